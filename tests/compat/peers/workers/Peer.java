import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;

/**
 * Curator's side of a test: each line on the standard input is a command, see the cases below,
 * and is answered by one line. Argument: CONNECT.
 */
public final class Peer {
    private final CuratorFramework client;
    private final Map<String, Consumer> consumers = new HashMap<>();
    private final Map<String, ServiceDiscovery<Load>> registered = new HashMap<>();

    private DistributedDoubleBarrier barrier;

    private Peer(String connect) {
        client = CuratorFrameworkFactory.newClient(connect, 40_000, 40_000, new RetryForever(50));
        client.start();
    }

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = peer.answer(line.split(" "));
            } catch (Throwable err) {
                answer = "error " + err.toString().replace('\n', ' ');
            }
            System.out.println(answer);
        }
        Runtime.getRuntime().halt(0); // the test is over
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "put": // KIND PATH ITEM:ARGUMENT...
                for (int i = 3; i < words.length; i++) {
                    String[] parts = words[i].split(":");
                    put(words[1], words[2], parts[0], parts.length > 1 ? parts[1] : "");
                }
                return "ok";
            case "consume": // KIND PATH
                consumers.put(words[2], new Consumer(words[1], words[2]));
                return "ok";
            case "allow": // PATH COUNT: how many items may be worked on
                consumers.get(words[1]).allowed.release(Integer.parseInt(words[2]));
                return "ok";
            case "begun": // PATH: the next item that is being worked on
                return consumers.get(words[1]).begun.take();
            case "stop": // PATH
                consumers.remove(words[1]).close.run();
                return "ok";
            case "remove": // PATH ID
                try (DistributedIdQueue<String> queue = Consumer.builder(client, null, words[1]).buildIdQueue()) {
                    queue.start();
                    return Integer.toString(queue.remove(words[2]));
                }
            case "take": // PATH: of a simple queue
                return text(new SimpleDistributedQueue(client, words[1]).take());
            case "register": // NAME ID ADDRESS PORT ZONE WEIGHT TYPE
                register(words);
                return "ok";
            case "unregister": // ID
                registered.remove(words[1]).close();
                return "ok";
            case "enter": // PATH MEMBERS: a double barrier
                barrier = new DistributedDoubleBarrier(client, words[1], Integer.parseInt(words[2]));
                return barrier.enter(120, TimeUnit.SECONDS) ? "entered" : "error: not entered";
            case "leave":
                return barrier.leave(120, TimeUnit.SECONDS) ? "left" : "error: not left";
            case "find": // NAME
                return find(words[1]);
            default:
                return "error: no such command";
        }
    }

    static String text(byte[] data) {
        return new String(data, StandardCharsets.UTF_8);
    }

    private void put(String kind, String path, String item, String argument) throws Exception {
        QueueBuilder<String> builder = Consumer.builder(client, null, path);
        switch (kind) {
            case "simple":
                new SimpleDistributedQueue(client, path).offer(item.getBytes(StandardCharsets.UTF_8));
                return;
            case "priority":
                try (DistributedPriorityQueue<String> queue = builder.buildPriorityQueue(0)) {
                    queue.start();
                    queue.put(item, Integer.parseInt(argument));
                    queue.flushPuts(300, TimeUnit.SECONDS);
                }
                return;
            case "delay":
                try (DistributedDelayQueue<String> queue = builder.buildDelayQueue()) {
                    queue.start();
                    queue.put(item, Long.parseLong(argument));
                    queue.flushPuts(300, TimeUnit.SECONDS);
                }
                return;
            case "id":
                try (DistributedIdQueue<String> queue = builder.buildIdQueue()) {
                    queue.start();
                    queue.put(item, argument);
                    queue.flushPuts(300, TimeUnit.SECONDS);
                }
                return;
            default:
                try (DistributedQueue<String> queue = builder.buildQueue()) {
                    queue.start();
                    if (argument.isEmpty()) {
                        queue.put(item);
                    } else { // several in one znode
                        List<String> all = List.of(item, argument);
                        java.util.Iterator<String> each = all.iterator();
                        MultiItem<String> items = () -> each.hasNext() ? each.next() : null;
                        queue.putMulti(items);
                    }
                    queue.flushPuts(300, TimeUnit.SECONDS);
                }
        }
    }

    private static ServiceDiscoveryBuilder<Load> services(CuratorFramework client) {
        return ServiceDiscoveryBuilder.builder(Load.class).client(client).basePath("/services");
    }

    private void register(String[] words) throws Exception {
        ServiceInstance<Load> instance = ServiceInstance.<Load>builder()
                .name(words[1])
                .id(words[2])
                .address(words[3])
                .port(Integer.parseInt(words[4]))
                .payload(new Load(words[5], Integer.parseInt(words[6])))
                .serviceType(ServiceType.valueOf(words[7]))
                .uriSpec(new UriSpec("{scheme}://{address}:{port}/v1"))
                .build();
        ServiceDiscovery<Load> discovery = services(client).thisInstance(instance).build();
        discovery.start();
        registered.put(words[2], discovery);
    }

    private String find(String name) throws Exception {
        try (ServiceDiscovery<Load> discovery = services(client).build()) {
            discovery.start();
            Collection<ServiceInstance<Load>> all = discovery.queryForInstances(name);
            String list = all.stream()
                    .map(i -> String.join(",", i.getId(), i.buildUriSpec(), i.getPayload().zone, "" + i.getPayload().weight, "" + i.getServiceType(), "" + i.isEnabled()))
                    .sorted()
                    .collect(Collectors.joining(" "));
            return list.isEmpty() ? "none" : list;
        }
    }

    /** The payload of a service. */
    public static final class Load {
        public String zone;
        public int weight;

        public Load() {}

        Load(String zone, int weight) {
            this.zone = zone;
            this.weight = weight;
        }
    }

    /** Works on the items of a queue, as many as are allowed. */
    private static final class ConsumerOf implements QueueConsumer<String> {
        final Consumer to;

        ConsumerOf(Consumer to) {
            this.to = to;
        }

        @Override
        public void consumeMessage(String message) throws Exception {
            to.begun.put(message);
            to.allowed.acquire();
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}
    }

    private final class Consumer {
        final BlockingQueue<String> begun = new LinkedBlockingQueue<>();
        final Semaphore allowed = new Semaphore(0);
        final Close close;

        Consumer(String kind, String path) throws Exception {
            QueueBuilder<String> builder = builder(client, new ConsumerOf(this), path).lockPath(path + "-claims");
            switch (kind) {
                case "priority":
                    DistributedPriorityQueue<String> priority = builder.buildPriorityQueue(0);
                    priority.start();
                    close = priority::close;
                    break;
                case "delay":
                    DistributedDelayQueue<String> delay = builder.buildDelayQueue();
                    delay.start();
                    close = delay::close;
                    break;
                case "id":
                    DistributedIdQueue<String> id = builder.buildIdQueue();
                    id.start();
                    close = id::close;
                    break;
                default:
                    DistributedQueue<String> queue = builder.buildQueue();
                    queue.start();
                    close = queue::close;
            }
        }

        static QueueBuilder<String> builder(CuratorFramework client, QueueConsumer<String> consumer, String path) {
            return QueueBuilder.builder(client, consumer, TEXT, path);
        }
    }

    private interface Close {
        void run() throws Exception;
    }

    private static final QueueSerializer<String> TEXT = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] data) {
            return text(data);
        }
    };
}

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Queues. */
final class Queues {
    private static final QueueSerializer<String> TEXT = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return Nodes.bytes(item);
        }

        @Override
        public String deserialize(byte[] data) {
            return new String(data);
        }
    };

    /** Collects what a queue hands out. */
    private static final class Collector implements QueueConsumer<String> {
        final List<String> items = Collections.synchronizedList(new ArrayList<>());

        @Override
        public void consumeMessage(String message) {
            items.add(message);
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}

        List<String> copy() {
            return List.copyOf(items);
        }
    }

    static void all(Checks checks) {
        checks.check("DistributedQueue", Queues::queue);
        checks.check("DistributedQueue with a lock", client -> locked(checks, client));
        checks.check("DistributedPriorityQueue", Queues::priorities);
        checks.check("DistributedDelayQueue", Queues::delays);
        checks.check("SimpleDistributedQueue", Queues::simple);
    }

    private static List<String> items(int count) {
        return IntStream.range(0, count).mapToObj(i -> String.format("item-%03d", i)).collect(Collectors.toList());
    }

    private static void queue(CuratorFramework client) throws Exception {
        Collector collector = new Collector();
        try (DistributedQueue<String> queue = QueueBuilder.builder(client, collector, TEXT, "/queues/plain").buildQueue()) {
            queue.start();
            for (String item : items(50)) queue.put(item);
            Checks.eventually(items(50), collector::copy);
        }
    }

    private static void locked(Checks checks, CuratorFramework client) throws Exception {
        Collector collector = new Collector();
        try (CuratorFramework other = checks.client();
                DistributedQueue<String> first = QueueBuilder.builder(client, collector, TEXT, "/queues/locked").lockPath("/queues/locks").buildQueue();
                DistributedQueue<String> second = QueueBuilder.builder(other, collector, TEXT, "/queues/locked").lockPath("/queues/locks").buildQueue()) {
            first.start();
            second.start();
            for (String item : items(50)) first.put(item);
            // Every item once, whoever of the two took it.
            Checks.eventually(items(50), () -> collector.copy().stream().sorted().collect(Collectors.toList()));
        }
    }

    private static void priorities(CuratorFramework client) throws Exception {
        try (DistributedPriorityQueue<String> producer = QueueBuilder.builder(client, null, TEXT, "/queues/priority").buildPriorityQueue(0)) {
            producer.start();
            for (int i = 0; i < 20; i++) producer.put(items(20).get(i), 20 - i);
            Checks.that(producer.flushPuts(60, java.util.concurrent.TimeUnit.SECONDS), "all items are stored");
        }
        Collector collector = new Collector();
        try (DistributedPriorityQueue<String> consumer = QueueBuilder.builder(client, collector, TEXT, "/queues/priority").buildPriorityQueue(100)) {
            consumer.start();
            List<String> want = new ArrayList<>(items(20));
            Collections.reverse(want);
            Checks.eventually(want, collector::copy);
        }
    }

    private static void delays(CuratorFramework client) throws Exception {
        Collector collector = new Collector();
        try (DistributedDelayQueue<String> queue = QueueBuilder.builder(client, collector, TEXT, "/queues/delay").buildDelayQueue()) {
            queue.start();
            long now = System.currentTimeMillis();
            queue.put("later", now + 1500);
            queue.put("sooner", now + 500);
            Checks.eventually(List.of("sooner", "later"), collector::copy);
        }
    }

    private static void simple(CuratorFramework client) throws Exception {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, "/queues/simple");
        for (String item : items(10)) Checks.that(queue.offer(Nodes.bytes(item)), item);
        Checks.same("item-000", new String(queue.peek()));
        for (String item : items(10)) Checks.same(item, new String(queue.take()));
        Checks.same(null, queue.poll());
    }
}

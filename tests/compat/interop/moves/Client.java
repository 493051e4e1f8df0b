import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.HostProvider;

/** A session that begins at a server of choice, knows all of them, and notes every event. */
final class Client implements Watcher {
    static final int TIMEOUT = 40_000;

    final ZooKeeper zk;
    private final List<String> states = Collections.synchronizedList(new ArrayList<>());

    Client(Servers servers, int first, boolean mayBeReadOnly) throws Exception {
        zk = new ZooKeeper("chosen:1", TIMEOUT, this, mayBeReadOnly, new Order(servers.addresses, first));
    }

    /** A client whose session is connected, and known to all servers: an ephemeral znode makes it so. */
    static Client connected(Servers servers, int first, boolean mayBeReadOnly) throws Exception {
        Client client = new Client(servers, first, mayBeReadOnly);
        client.await(ZooKeeper.States.CONNECTED);
        client.create("/session-" + Long.toHexString(client.zk.getSessionId()), "", CreateMode.EPHEMERAL);
        return client;
    }

    void await(ZooKeeper.States state) throws Exception {
        Servers.eventually(state.toString(), () -> zk.getState() == state);
        // The event comes on another thread.
        String event = state == ZooKeeper.States.CONNECTEDREADONLY ? "ConnectedReadOnly" : "SyncConnected";
        Servers.eventually(event, () -> states().endsWith(event + "]"));
    }

    @Override
    public void process(WatchedEvent event) {
        if (event.getType() == Event.EventType.None) states.add(event.getState().toString());
    }

    /** The changes of the session's state that its watcher was told of; a connection that was lost again at once counts once. */
    String states() {
        synchronized (states) {
            return states.toString().replaceAll("(, Disconnected, SyncConnected)+", ", Disconnected, SyncConnected");
        }
    }

    boolean expired() {
        return states().contains("Expired");
    }

    /** Whether it is connected to a server. */
    boolean at(InetSocketAddress server) {
        return zk.toString().matches(".*remoteserver:\\S*:" + server.getPort() + " .*");
    }

    /** Repeats what may be done twice until the connection does not break under it. */
    <T> T sure(Callable<T> body) throws Exception {
        long until = System.nanoTime() + Servers.LIMIT * 1_000_000;
        while (true) {
            try {
                return body.call();
            } catch (KeeperException.ConnectionLossException e) {
                if (System.nanoTime() > until) throw e;
                Thread.sleep(20);
            }
        }
    }

    void create(String path, String data, CreateMode mode) throws Exception {
        sure(() -> {
            try {
                return zk.create(path, data.getBytes(), Ids.OPEN_ACL_UNSAFE, mode);
            } catch (KeeperException.NodeExistsException e) {
                return path;
            }
        });
    }

    /** Sets a znode once, however often the connection breaks. */
    void set(String path, int version, String data) throws Exception {
        sure(() -> {
            try {
                return zk.setData(path, data.getBytes(), version);
            } catch (KeeperException.BadVersionException e) {
                return null;
            }
        });
    }

    void delete(String path) throws Exception {
        sure(() -> {
            try {
                zk.delete(path, -1);
            } catch (KeeperException.NoNodeException e) {
                // it is gone
            }
            return null;
        });
    }

    /** What a call gives: its result, or the name of its exception. */
    static String outcome(Callable<?> call) {
        try {
            Object got = call.call();
            return got instanceof byte[] ? new String((byte[]) got) : String.valueOf(got);
        } catch (Exception e) {
            return e.getClass().getSimpleName() + (e instanceof KeeperException && ((KeeperException) e).getPath() != null ? " " + ((KeeperException) e).getPath() : "");
        }
    }

    /** Servers in the order given, from a first one on. */
    private static final class Order implements HostProvider {
        private final List<InetSocketAddress> all;
        private final int first;
        private int at = -1;
        private int good = -1;

        Order(List<InetSocketAddress> all, int first) {
            this.all = all;
            this.first = first;
        }

        @Override
        public int size() {
            return all.size();
        }

        @Override
        public InetSocketAddress next(long spinDelay) {
            at++;
            if (good >= 0 && at % all.size() == good) pause(spinDelay);
            return all.get((first + at) % all.size());
        }

        private static void pause(long millis) {
            try {
                if (millis > 0) Thread.sleep(millis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void onConnected() {
            good = at % all.size();
        }

        @Override
        public boolean updateServerList(Collection<InetSocketAddress> addresses, InetSocketAddress current) {
            return false;
        }
    }
}

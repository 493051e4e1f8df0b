import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/** Holds an ephemeral znode and a watch while its servers are replaced. */
public class Holder {
    public static void main(String[] args) throws Exception {
        CountDownLatch changed = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(args[0], 120_000, event -> System.out.println("event " + event.getState() + " " + event.getType()));
        retry(() -> zk.create("/java", "held".getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL));
        retry(() -> zk.getData("/java-watched", (WatchedEvent e) -> {
            if (e.getType() == Watcher.Event.EventType.NodeDataChanged) {
                changed.countDown();
            }
        }, null));
        System.out.println("holds " + Long.toHexString(zk.getSessionId()));
        System.in.read(); // until the servers are others
        long owner = retry(() -> zk.exists("/java", false)).getEphemeralOwner();
        System.out.println("still " + Long.toHexString(owner) + " " + Long.toHexString(zk.getSessionId()));
        System.in.read(); // until the znode was changed
        System.out.println("watch " + changed.await(60, TimeUnit.SECONDS));
        System.in.read();
    }

    interface Call<T> {
        T get() throws Exception;
    }

    static <T> T retry(Call<T> call) throws Exception {
        for (int i = 0; ; i++) {
            try {
                return call.get();
            } catch (KeeperException.ConnectionLossException e) {
                if (i == 80) {
                    throw e;
                }
            }
        }
    }
}

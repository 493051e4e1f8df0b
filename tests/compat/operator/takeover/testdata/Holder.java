import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;

/**
 * A Curator client that holds a mutex, leads, caches (with a persistent watch where the server has
 * them) and keeps a node through a takeover. For each line on standard input it says what it has.
 */
public class Holder {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], 20000, 5000, new RetryForever(100));
        client.start();
        client.blockUntilConnected();
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        InterProcessMutex mutex = new InterProcessMutex(client, "/curator/mutex");
        if (!mutex.acquire(60, TimeUnit.SECONDS)) throw new Exception("no mutex");
        LeaderLatch latch = new LeaderLatch(client, "/curator/latch", "holder");
        latch.start();
        latch.await(60, TimeUnit.SECONDS);
        PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, "/curator/node", new byte[] {1});
        node.start();
        node.waitForInitialCreate(60, TimeUnit.SECONDS);
        client.create().forPath("/curator/cached", new byte[0]);
        AtomicInteger changes = new AtomicInteger();
        CuratorCache cache = CuratorCache.build(client, "/curator/cached");
        cache.listenable().addListener((type, old, data) -> changes.incrementAndGet());
        cache.start();
        while (changes.get() == 0) Thread.sleep(10);
        System.out.println("holds " + Long.toHexString(session));
        byte[] line = new byte[100];
        while (System.in.read(line) > 0) {
            client.sync().forPath("/curator");
            long owner = client.checkExists().forPath("/curator/node").getEphemeralOwner();
            long now = client.getZookeeperClient().getZooKeeper().getSessionId();
            String first = client.getChildren().forPath("/curator/mutex").get(0);
            long holder = client.checkExists().forPath("/curator/mutex/" + first).getEphemeralOwner();
            for (int i = 0; i < 600 && !latch.hasLeadership(); i++) Thread.sleep(100); // false while it was not connected
            System.out.println("still " + Long.toHexString(owner) + " " + Long.toHexString(now) + " " + Long.toHexString(holder)
                + " " + mutex.isAcquiredInThisProcess() + " " + latch.hasLeadership() + " " + changes.get());
        }
        mutex.release();
        System.exit(0);
    }
}

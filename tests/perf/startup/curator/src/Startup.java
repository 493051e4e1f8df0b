import java.util.concurrent.CountDownLatch;
import org.apache.curator.test.TestingCluster;
import org.apache.curator.test.TestingServer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Prints how many milliseconds Curator's test servers take until a create is answered. */
public final class Startup {
  private Startup() {}

  public static void main(String[] args) throws Exception {
    int servers = Integer.parseInt(args[0]);
    int clusters = Integer.parseInt(args[1]);
    for (int i = 0; i < servers; i++) {
      long begun = System.nanoTime();
      try (TestingServer server = new TestingServer()) {
        create(server.getConnectString());
        print("server", begun);
      }
    }
    for (int i = 0; i < clusters; i++) {
      long begun = System.nanoTime();
      try (TestingCluster cluster = new TestingCluster(3)) {
        cluster.start();
        create(cluster.getConnectString());
        print("cluster", begun);
      }
    }
    System.exit(0);
  }

  private static void print(String what, long begun) {
    System.out.println(what + " " + (System.nanoTime() - begun) / 1e6);
  }

  private static void create(String connect) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    try (ZooKeeper zk =
        new ZooKeeper(
            connect,
            30_000,
            event -> {
              if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
              }
            })) {
      connected.await();
      zk.create("/a", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }
  }
}

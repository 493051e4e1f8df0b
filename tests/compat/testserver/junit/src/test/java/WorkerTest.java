import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class WorkerTest {
    static TestServer zookeeper;
    CuratorFramework client;
    String empty;

    @BeforeAll
    static void startServer() throws Exception {
        zookeeper = new TestServer();
    }

    @AfterAll
    static void stopServer() throws Exception {
        zookeeper.close();
    }

    @BeforeEach
    void connect() throws Exception {
        empty = TestServer.field(zookeeper.ask("POST", "/snapshots", ""), "id");
        client = newClient();
    }

    @AfterEach
    void reset() throws Exception {
        client.close();
        zookeeper.ask("POST", "/snapshots/" + empty + "/reset", "");
    }

    CuratorFramework newClient() throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(zookeeper.connectString, new RetryOneTime(100));
        c.start();
        assertTrue(c.blockUntilConnected(30, TimeUnit.SECONDS));
        return c;
    }

    long session(CuratorFramework c) throws Exception {
        return c.getZookeeperClient().getZooKeeper().getSessionId();
    }

    @Test
    void writesAndReads() throws Exception {
        client.create().creatingParentsIfNeeded().forPath("/jobs/one", "resize".getBytes());
        assertEquals("resize", TestServer.field(zookeeper.ask("GET", "/node?path=/jobs/one", ""), "data"));
    }

    @Test
    void noticesThatItsSessionIsOver() throws Exception {
        CountDownLatch lost = new CountDownLatch(1);
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.LOST) {
                lost.countDown();
            }
        });
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/worker");
        zookeeper.ask("POST", "/sessions/" + session(client) + "/expire", "");
        assertTrue(lost.await(30, TimeUnit.SECONDS));
        assertTrue(zookeeper.ask("GET", "/exists?path=/worker", "").contains("false"));
    }

    @Test
    void theNextLeadsWhenTheLeaderHangs() throws Exception {
        try (CuratorFramework other = newClient(); LeaderLatch second = new LeaderLatch(other, "/leader")) {
            LeaderLatch first = new LeaderLatch(client, "/leader");
            first.start();
            first.await();
            second.start();
            assertFalse(second.await(1, TimeUnit.MILLISECONDS));
            zookeeper.ask("POST", "/sessions/" + session(client) + "/hang", "");
            zookeeper.ask("POST", "/advance", "{\"duration\": \"2m\"}"); // at once
            assertTrue(second.await(30, TimeUnit.SECONDS));
        }
    }

    @Test
    void isNotAllowedTo() throws Exception {
        zookeeper.ask("POST", "/faults",
                "{\"action\": \"fail\", \"op\": \"getData\", \"path\": \"/config*\", \"code\": \"NoAuth\"}");
        assertThrows(KeeperException.NoAuthException.class, () -> client.getData().forPath("/config"));
    }
}

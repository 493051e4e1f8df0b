import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.curator.utils.ZKPaths;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.Stat;

/** Nodes as such: kinds, ACLs, transactions, background calls, nodes that are kept. */
final class Nodes {
    static void all(Checks checks) {
        checks.check("create, read, write, delete", Nodes::basics);
        checks.check("the kinds of nodes", Nodes::kinds);
        checks.check("containers and TTLs", Nodes::containersAndTtls);
        checks.check("protected creation", Nodes::protection);
        checks.check("idempotent calls", Nodes::idempotent);
        checks.check("compressed data", Nodes::compression);
        checks.check("transactions", Nodes::transactions);
        checks.check("failed transactions", Nodes::failedTransactions);
        checks.check("background calls", Nodes::background);
        checks.check("ACLs", Nodes::acls);
        checks.check("namespaces and watchers", Nodes::watchers);
        checks.check("persistent watchers", Nodes::persistentWatchers);
        checks.check("removed watches", Nodes::removedWatches);
        checks.check("PersistentNode", Nodes::persistentNode);
        checks.check("PersistentTtlNode", Nodes::persistentTtlNode);
        checks.check("GroupMember", client -> groupMember(checks, client));
        checks.check("large data and many children", Nodes::large);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(CuratorFramework client, String path) throws Exception {
        return new String(client.getData().forPath(path), StandardCharsets.UTF_8);
    }

    private static void basics(CuratorFramework client) throws Exception {
        Stat stat = new Stat();
        Checks.same("/basic/a/b", client.create().storingStatIn(stat).creatingParentsIfNeeded().forPath("/basic/a/b", bytes("one")));
        Checks.same(3, stat.getDataLength());
        Checks.same("one", text(client, "/basic/a/b"));
        Checks.same(1, client.setData().withVersion(0).forPath("/basic/a/b", bytes("two")).getVersion());
        Checks.refuses(KeeperException.BadVersionException.class, () -> client.setData().withVersion(0).forPath("/basic/a/b", bytes("x")));
        Checks.refuses(KeeperException.NodeExistsException.class, () -> client.create().forPath("/basic/a/b"));
        Checks.refuses(KeeperException.NotEmptyException.class, () -> client.delete().forPath("/basic/a"));
        Checks.refuses(KeeperException.NoNodeException.class, () -> client.getData().forPath("/basic/none"));
        Checks.same(List.of("a"), client.getChildren().storingStatIn(stat).forPath("/basic"));
        Checks.same(1, stat.getNumChildren());
        client.sync().forPath("/basic");
        client.delete().guaranteed().deletingChildrenIfNeeded().forPath("/basic");
        Checks.same(null, client.checkExists().forPath("/basic"));
    }

    private static void kinds(CuratorFramework client) throws Exception {
        client.create().forPath("/kinds");
        String first = client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/kinds/s-");
        String second = client.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/kinds/s-");
        Checks.same("/kinds/s-0000000000", first);
        Checks.same("/kinds/s-0000000001", second);
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/kinds/e");
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        Checks.same(session, client.checkExists().forPath("/kinds/e").getEphemeralOwner());
        Checks.refuses(KeeperException.NoChildrenForEphemeralsException.class, () -> client.create().forPath("/kinds/e/x"));
        client.delete().deletingChildrenIfNeeded().forPath("/kinds");
    }

    private static void containersAndTtls(CuratorFramework client) throws Exception {
        client.createContainers("/containers/a");
        // Neither kind shows in the owner: only that of an ephemeral node is told.
        Checks.same(0L, client.checkExists().forPath("/containers/a").getEphemeralOwner());
        client.create().withTtl(3_600_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/containers/ttl");
        String sequence = client.create().withTtl(3_600_000).withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL).forPath("/containers/ttl-");
        Checks.that(sequence.startsWith("/containers/ttl-00"), sequence);
        Checks.same(0L, client.checkExists().forPath("/containers/ttl").getEphemeralOwner());
        client.create().withTtl(200).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/containers/short");
        client.delete().deletingChildrenIfNeeded().forPath("/containers");
    }

    private static void protection(CuratorFramework client) throws Exception {
        client.create().forPath("/protected");
        String path = client.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/protected/n-");
        Checks.that(path.matches("/protected/_c_[-0-9a-f]{36}-n-0000000000"), path);
        client.delete().deletingChildrenIfNeeded().forPath("/protected");
    }

    private static void idempotent(CuratorFramework client) throws Exception {
        client.create().idempotent().forPath("/idempotent", bytes("x"));
        client.create().idempotent().forPath("/idempotent", bytes("x"));
        client.create().orSetData().forPath("/idempotent", bytes("y"));
        Checks.same("y", text(client, "/idempotent"));
        client.delete().idempotent().forPath("/idempotent");
        client.delete().quietly().forPath("/idempotent");
    }

    private static void compression(CuratorFramework client) throws Exception {
        client.create().compressed().forPath("/compressed", bytes("z".repeat(1000)));
        Checks.same(1000, client.getData().decompressed().forPath("/compressed").length);
        Checks.that(client.checkExists().forPath("/compressed").getDataLength() < 200, "it is shorter");
        client.delete().forPath("/compressed");
    }

    private static void transactions(CuratorFramework client) throws Exception {
        List<CuratorTransactionResult> results = client.transaction().forOperations(
                client.transactionOp().create().forPath("/tx", bytes("a")),
                client.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/tx/s-", bytes("b")),
                client.transactionOp().setData().withVersion(0).forPath("/tx", bytes("c")),
                client.transactionOp().check().withVersion(1).forPath("/tx"),
                client.transactionOp().delete().forPath("/tx/s-0000000000"));
        List<String> seen = new ArrayList<>();
        for (CuratorTransactionResult r : results) seen.add(r.getType() + " " + r.getResultPath() + " " + r.getError());
        Checks.same("[CREATE /tx 0, CREATE /tx/s-0000000000 0, SET_DATA null 0, CHECK null 0, DELETE null 0]", seen.toString());
        Checks.same(1, results.get(2).getResultStat().getVersion());
        client.delete().forPath("/tx");
    }

    private static void failedTransactions(CuratorFramework client) throws Exception {
        List<CuratorOp> ops = List.of(
                client.transactionOp().create().forPath("/tx-bad", bytes("a")),
                client.transactionOp().check().withVersion(7).forPath("/tx-bad"),
                client.transactionOp().create().forPath("/tx-bad/x", bytes("a")));
        try {
            client.transaction().forOperations(ops);
            throw new AssertionError("it went through");
        } catch (KeeperException.BadVersionException e) {
            List<Integer> codes = new ArrayList<>();
            e.getResults().forEach(r -> codes.add(((org.apache.zookeeper.OpResult.ErrorResult) r).getErr()));
            Checks.same(List.of(0, -103, -2), codes);
        }
        Checks.same(null, client.checkExists().forPath("/tx-bad"));
    }

    private static void background(CuratorFramework client) throws Exception {
        int count = 500;
        client.create().forPath("/background");
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            client.create().inBackground((c, event) -> {
                order.add(event.getPath() + " " + event.getResultCode());
                done.countDown();
            }).forPath(String.format("/background/%04d", i));
        }
        Checks.that(done.await(60, TimeUnit.SECONDS), "every answer came");
        for (int i = 0; i < count; i++) Checks.same(String.format("/background/%04d 0", i), order.get(i));
        Checks.same(count, client.getChildren().forPath("/background").size());
        client.delete().deletingChildrenIfNeeded().forPath("/background");
    }

    private static void acls(CuratorFramework client) throws Exception {
        client.create().withACL(ZooDefs.Ids.READ_ACL_UNSAFE).forPath("/acl-read");
        Checks.refuses(KeeperException.NoAuthException.class, () -> client.setData().forPath("/acl-read", bytes("x")));
        Checks.refuses(KeeperException.InvalidACLException.class, () -> client.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/acl-mine"));
        client.getZookeeperClient().getZooKeeper().addAuthInfo("digest", bytes("me:secret"));
        client.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/acl-mine");
        Checks.same("digest", client.getACL().forPath("/acl-mine").get(0).getId().getScheme());
        Checks.same(1, client.setACL().withVersion(0).withACL(ZooDefs.Ids.OPEN_ACL_UNSAFE).forPath("/acl-mine").getAversion());
        client.delete().forPath("/acl-mine");
        client.delete().forPath("/acl-read");
    }

    private static void watchers(CuratorFramework client) throws Exception {
        CuratorFramework space = client.usingNamespace("space");
        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        space.create().forPath("/n", bytes("x"));
        space.getData().usingWatcher((org.apache.zookeeper.Watcher) e -> events.add(e.getType() + " " + e.getPath())).forPath("/n");
        space.setData().forPath("/n", bytes("y"));
        Checks.same("NodeDataChanged /n", events.poll(60, TimeUnit.SECONDS));
        Checks.same("y", text(client, "/space/n"));
        client.delete().deletingChildrenIfNeeded().forPath("/space");
    }

    private static void persistentWatchers(CuratorFramework client) throws Exception {
        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        client.create().forPath("/pw");
        try (PersistentWatcher watcher = new PersistentWatcher(client, "/pw", true)) {
            CountDownLatch set = new CountDownLatch(1);
            watcher.getResetListenable().addListener(set::countDown);
            watcher.getListenable().addListener(e -> events.add(e.getType() + " " + e.getPath()));
            watcher.start();
            Checks.that(set.await(60, TimeUnit.SECONDS), "the watch is set");
            client.create().forPath("/pw/a");
            client.setData().forPath("/pw/a", bytes("1"));
            client.setData().forPath("/pw/a", bytes("2"));
            client.delete().forPath("/pw/a");
            for (String want : List.of("NodeCreated", "NodeDataChanged", "NodeDataChanged", "NodeDeleted"))
                Checks.same(want + " /pw/a", events.poll(60, TimeUnit.SECONDS));
        }
        client.delete().forPath("/pw");
    }

    private static void removedWatches(CuratorFramework client) throws Exception {
        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        org.apache.zookeeper.Watcher watcher = e -> events.add(e.getType() + " " + e.getPath());
        client.create().forPath("/rw");
        client.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(watcher).forPath("/rw");
        client.setData().forPath("/rw", bytes("1"));
        Checks.same("NodeDataChanged /rw", events.poll(60, TimeUnit.SECONDS));
        client.watchers().remove(watcher).forPath("/rw");
        Checks.same("PersistentWatchRemoved /rw", events.poll(60, TimeUnit.SECONDS));
        client.setData().forPath("/rw", bytes("2"));
        client.sync().forPath("/rw");
        Checks.same(null, events.poll());
        client.delete().forPath("/rw");
    }

    private static void persistentNode(CuratorFramework client) throws Exception {
        try (PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, "/kept", bytes("x"))) {
            node.start();
            Checks.that(node.waitForInitialCreate(60, TimeUnit.SECONDS), "it was created");
            client.delete().forPath("/kept");
            Checks.eventually(true, () -> client.checkExists().forPath("/kept") != null);
            node.setData(bytes("y"));
            Checks.eventually("y", () -> text(client, "/kept"));
        }
        Checks.eventually(null, () -> client.checkExists().forPath("/kept"));
    }

    private static void persistentTtlNode(CuratorFramework client) throws Exception {
        try (PersistentTtlNode node = new PersistentTtlNode(client, "/kept-ttl", 4_000, bytes("x"))) {
            node.start();
            Checks.that(node.waitForInitialCreate(60, TimeUnit.SECONDS), "it was created");
            // It is touched, by a child, after half of its time.
            Checks.eventually(true, () -> client.checkExists().forPath("/kept-ttl/" + PersistentTtlNode.DEFAULT_CHILD_NODE_NAME) != null);
        }
        client.delete().quietly().deletingChildrenIfNeeded().forPath("/kept-ttl");
    }

    private static void groupMember(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                GroupMember first = new GroupMember(client, "/group", "first", bytes("1"));
                GroupMember second = new GroupMember(other, "/group", "second", bytes("2"))) {
            first.start();
            second.start();
            Checks.eventually(2, () -> first.getCurrentMembers().size());
            second.close();
            Checks.eventually(1, () -> first.getCurrentMembers().size());
        }
        client.delete().quietly().deletingChildrenIfNeeded().forPath("/group");
    }

    private static void large(CuratorFramework client) throws Exception {
        client.create().forPath("/large", new byte[900_000]);
        Checks.same(900_000, client.getData().forPath("/large").length);
        for (int i = 0; i < 20; i++) {
            List<CuratorOp> ops = new ArrayList<>();
            for (int j = 0; j < 100; j++) ops.add(client.transactionOp().create().forPath(ZKPaths.makePath("/large", "child-" + i + "-" + j)));
            client.transaction().forOperations(ops);
        }
        Checks.same(2000, client.getChildren().forPath("/large").size());
        client.delete().deletingChildrenIfNeeded().forPath("/large");
    }
}

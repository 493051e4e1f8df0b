import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/** One of three servers is left, and serves whoever may be served read-only. */
final class ReadOnly {
    static void all(Servers servers) throws Exception {
        int left = (servers.leader() + 1) % 3;
        Client before = Client.connected(servers, left, true);
        Client strict = Client.connected(servers, left, false);
        before.create("/ro", "data", CreateMode.PERSISTENT);
        for (String path : new String[] {"data", "gone", "children", "untouched"}) before.create("/ro/" + path, "0", CreateMode.PERSISTENT);
        before.create("/ro/mine", "", CreateMode.EPHEMERAL);
        Watches watches = new Watches("/ro");
        watches.arm(before.zk);
        long session = before.zk.getSessionId();
        Servers.result("with a quorum: isro", servers.word(left, "isro"));
        Servers.result("with a quorum: states", before.states() + " " + before.zk.getState());

        for (int i = 0; i < 3; i++) if (i != left) servers.kill(i);
        Servers.eventually("read-only mode", () -> servers.word(left, "isro").equals("ro"));
        Servers.result("cut off: isro", servers.word(left, "isro"));
        Servers.result("cut off: srvr says", servers.mode(left));
        Client late = new Client(servers, left, true);
        late.await(ZooKeeper.States.CONNECTEDREADONLY);
        Client lateStrict = new Client(servers, left, false);
        Servers.result("cut off: a new client", late.states() + " " + late.zk.getState());
        Servers.result("cut off: it has a session of its own", late.zk.getSessionId() != 0 && late.zk.getSessionId() != session);
        reads(late.zk, session);
        writes(late.zk);
        Watches lateWatches = new Watches("/ro");
        lateWatches.arm(late.zk);
        Thread.sleep(1_000); // who may not be served here has tried by now
        Servers.result("cut off: a new client that must write", lateStrict.states() + " " + lateStrict.zk.getState());
        Servers.result("cut off: a session of before that must write", strict.states() + " " + strict.zk.getState());
        Servers.result("cut off: a session of before", before.states() + " " + before.zk.getState());
        Client brief = new Client(servers, left, true);
        brief.await(ZooKeeper.States.CONNECTEDREADONLY);
        Servers.result("cut off: close", Client.outcome(() -> {
            brief.zk.close();
            return brief.zk.getState();
        }));

        for (int i = 0; i < 3; i++) if (i != left) servers.start(i);
        servers.leader();
        for (Client client : List.of(late, lateStrict, before, strict)) client.await(ZooKeeper.States.CONNECTED);
        back(servers, left, session, before, late);
        before.set("/ro/data", 0, "1");
        before.create("/ro/later", "", CreateMode.PERSISTENT);
        before.delete("/ro/gone");
        before.create("/ro/children/child", "", CreateMode.PERSISTENT);
        Servers.result("back: watches of before", watches.told(4, "/later"));
        Servers.result("back: watches of the client that was read-only", lateWatches.told(4, "/later"));
        for (Client client : List.of(late, lateStrict, before, strict)) {
            Servers.result("back: states", client.states());
            client.zk.close();
        }
    }

    private static void back(Servers servers, int left, long session, Client before, Client late) throws Exception {
        Servers.result("back: isro", servers.word(left, "isro"));
        Servers.result("back: the session of before is the same", before.zk.getSessionId() == session);
        Servers.result("back: its ephemeral znode", before.sure(() -> before.zk.exists("/ro/mine", false)).getEphemeralOwner() == session);
        Servers.result("back: the read-only client writes", Client.outcome(() -> late.sure(() -> late.zk.create("/ro/late", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL))));
        Servers.result("back: in its own session", late.zk.exists("/ro/late", false).getEphemeralOwner() == late.zk.getSessionId());
    }

    private static void reads(ZooKeeper zk, long session) {
        Servers.result("read-only: getData", Client.outcome(() -> zk.getData("/ro", false, null)));
        Servers.result("read-only: getData of nothing", Client.outcome(() -> zk.getData("/nothing", false, null)));
        Servers.result("read-only: exists", Client.outcome(() -> zk.exists("/ro/mine", false).getEphemeralOwner() == session));
        Servers.result("read-only: getChildren", Client.outcome(() -> zk.getChildren("/ro", false).stream().sorted().collect(Collectors.toList())));
        Servers.result("read-only: getACL", Client.outcome(() -> zk.getACL("/ro", null)));
        Servers.result("read-only: getAllChildrenNumber", Client.outcome(() -> zk.getAllChildrenNumber("/ro")));
        Servers.result("read-only: getEphemerals", Client.outcome(() -> zk.getEphemerals("/")));
        Servers.result("read-only: whoAmI", Client.outcome(() -> zk.whoAmI().size()));
        Servers.result("read-only: getConfig", Client.outcome(() -> new String(zk.getConfig(false, null)).lines().count()));
        Servers.result("read-only: addWatch", Client.outcome(() -> {
            zk.addWatch("/ro", event -> {}, AddWatchMode.PERSISTENT);
            return "done";
        }));
        Servers.result("read-only: multi of reads", Client.outcome(() -> zk.multi(List.of(Op.getData("/ro"), Op.getChildren("/ro"))).size()));
        Servers.result("read-only: multi of one check", Client.outcome(() -> zk.multi(List.of(Op.check("/ro", -1))).size()));
    }

    private static void writes(ZooKeeper zk) {
        Servers.result("read-only: create", Client.outcome(() -> zk.create("/w", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)));
        Servers.result("read-only: create ephemeral", Client.outcome(() -> zk.create("/w", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)));
        Servers.result("read-only: create container", Client.outcome(() -> zk.create("/w", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER)));
        Servers.result("read-only: setData", Client.outcome(() -> zk.setData("/ro", new byte[0], -1)));
        Servers.result("read-only: setData of nothing", Client.outcome(() -> zk.setData("/nothing", new byte[0], -1)));
        Servers.result("read-only: setACL", Client.outcome(() -> zk.setACL("/ro", Ids.OPEN_ACL_UNSAFE, -1)));
        Servers.result("read-only: delete", Client.outcome(() -> {
            zk.delete("/ro/data", -1);
            return "done";
        }));
        Servers.result("read-only: multi", Client.outcome(() -> zk.multi(List.of(Op.delete("/ro/data", -1)))));
        Servers.result("read-only: sync", Client.outcome(() -> {
            CompletableFuture<Integer> code = new CompletableFuture<>();
            zk.sync("/", (rc, path, context) -> code.complete(rc), null);
            return code.get(60, TimeUnit.SECONDS);
        }));
    }
}

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** A session whose server is killed goes on at another one. */
final class Move {
    static void all(Servers servers) throws Exception {
        int leader = servers.leader();
        one(servers, "follower", (leader + 1) % 3);
        one(servers, "leader", servers.leader());
    }

    /** Kills a server under a session; another session makes changes at once, so that watches have missed some. */
    private static void one(Servers servers, String kind, int killed) throws Exception {
        String root = "/moves-" + kind;
        Client other = Client.connected(servers, (killed + 1) % 3, false);
        Client client = Client.connected(servers, killed, false);
        ZooKeeper zk = client.zk;
        for (String path : new String[] {root, root + "/data", root + "/gone", root + "/children", root + "/untouched"}) other.create(path, "0", CreateMode.PERSISTENT);
        other.zk.sync("/");
        zk.sync("/");
        zk.exists(root, false);
        client.create(root + "/mine", "mine", CreateMode.EPHEMERAL);
        String sequential = zk.create(root + "/mine-", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
        Watches watches = new Watches(root);
        watches.arm(zk);
        Watches lasting = new Watches(root);
        lasting.armPersistent(zk);
        long id = zk.getSessionId();
        int timeout = zk.getSessionTimeout();
        String password = Arrays.toString(zk.getSessionPasswd());
        String name = kind + " killed: ";
        Servers.result(name + "it was the session's server", client.at(servers.addresses.get(killed)));

        servers.kill(killed);
        other.set(root + "/data", 0, "1");
        other.create(root + "/later", "", CreateMode.PERSISTENT);
        other.delete(root + "/gone");
        other.create(root + "/children/child", "", CreateMode.PERSISTENT);
        Servers.result(name + "one-shot watches", watches.told(4, "/later"));
        client.await(ZooKeeper.States.CONNECTED);
        Servers.result(name + "states", client.states());
        Servers.result(name + "the same session, timeout and password",
                id == zk.getSessionId() && timeout == zk.getSessionTimeout() && password.equals(Arrays.toString(zk.getSessionPasswd())));
        Servers.result(name + "it is at another server", !client.at(servers.addresses.get(killed)));
        Stat stat = client.sure(() -> zk.exists(root + "/mine", false));
        Servers.result(name + "its ephemeral znode", stat != null && stat.getEphemeralOwner() == id);
        Servers.result(name + "its ephemerals", client.sure(() -> zk.getEphemerals(root)).stream().sorted().collect(Collectors.toList()));
        Servers.result(name + "seen by others", other.sure(() -> other.zk.exists(sequential, false)) != null);
        // Changes that nobody can have missed: the one-shot watches are spent.
        other.set(root + "/data", 1, "2");
        other.create(root + "/children/second", "", CreateMode.PERSISTENT);
        other.delete(root + "/children/second");
        other.delete(root + "/children/child");
        String seen = lasting.told(2, "NodeDeleted " + root + "/children/child");
        Servers.result(name + "one-shot watches are spent", watches.told(4, "/later"));
        Servers.result(name + "persistent watches hear the later changes", after(seen, root));
        client.create(root + "/written", "", CreateMode.PERSISTENT);
        zk.close();
        Servers.eventually("the ephemerals go with the session", () -> other.sure(() -> other.zk.exists(sequential, false)) == null);
        Servers.result(name + "the ephemerals go with the session", true);
        Servers.result(name + "nobody's session expired", !client.expired() && !other.expired());
        other.zk.close();
        servers.start(killed);
        servers.leader();
    }

    /** Persistent watches are told of nothing that they missed, which is chance; from "second" on they are told of all. */
    private static String after(String seen, String root) {
        return seen.replaceAll("(NodeDataChanged|NodeCreated|NodeDeleted) " + root + "/(data|later|gone|mine|children/child)(, |(?=\\]))", "")
                .replaceAll("NodeChildrenChanged " + root + "/children, (?=NodeChildrenChanged)", "");
    }
}

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Stat;

/**
 * Connects as each of its arguments says and prints who the server takes it for and what it may do. An argument is
 * name|host:port|key=value;key=value, with the client's properties and, as auth.SCHEME, what it calls addAuthInfo with.
 */
public class Secure {
    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            String[] part = arg.split("\\|", -1);
            System.out.println(part[0] + ": " + run(part[0], part[1], part[2]));
        }
        System.exit(0);
    }

    static String run(String name, String address, String settings) throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        List<String[]> auth = new ArrayList<>();
        config.setProperty("zookeeper.sasl.client", "false");
        for (String setting : settings.split(";")) {
            String[] kv = setting.split("=", 2);
            if (kv[0].startsWith("auth.")) {
                auth.add(new String[] {kv[0].substring(5), kv[1]});
            } else if (!setting.isEmpty()) {
                config.setProperty("zookeeper." + kv[0], kv[1]);
            }
        }
        CountDownLatch settled = new CountDownLatch(1);
        List<KeeperState> states = Collections.synchronizedList(new ArrayList<>());
        ZooKeeper zk = new ZooKeeper(address, 30000, event -> {
            KeeperState state = event.getState();
            states.add(state);
            settled.countDown();
        }, config);
        try {
            for (String[] a : auth) {
                zk.addAuthInfo(a[0], a[1].getBytes());
            }
            if (!settled.await(name.equals("revoked") || name.equals("unknown") ? 5 : 60, TimeUnit.SECONDS)) {
                return "not let in, states " + states;
            }
            return use(zk, "/" + name);
        } catch (KeeperException.AuthFailedException | KeeperException.ConnectionLossException e) {
            return "cut off"; // which of the two is a race inside of the client
        } catch (KeeperException e) {
            return "refused " + e.code();
        } finally {
            if (!states.isEmpty()) {
                zk.close(1000); // without a connection it would wait for the end of the session
            }
        }
    }

    static String use(ZooKeeper zk, String path) throws Exception {
        String made;
        try {
            zk.create(path, new byte[0], ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            List<String> entries = new ArrayList<>();
            for (ACL a : zk.getACL(path, new Stat())) {
                entries.add(a.getId().getScheme() + ":" + a.getId().getId());
            }
            Collections.sort(entries);
            made = "ACL " + entries;
        } catch (KeeperException.InvalidACLException e) {
            made = "cannot create: " + e.code();
        }
        List<String> who = new ArrayList<>();
        for (ClientInfo i : zk.whoAmI()) {
            who.add(i.getAuthScheme() + ":" + i.getUser());
        }
        Collections.sort(who);
        String other;
        try {
            zk.getData("/closed", false, null);
            other = "reads what is closed";
        } catch (KeeperException e) {
            other = "closed: " + e.code();
        }
        return who + ", " + made + ", " + other;
    }
}

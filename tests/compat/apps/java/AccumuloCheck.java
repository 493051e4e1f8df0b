import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.accumulo.core.client.Accumulo;
import org.apache.accumulo.core.client.AccumuloClient;
import org.apache.accumulo.core.client.BatchWriter;
import org.apache.accumulo.core.client.Scanner;
import org.apache.accumulo.core.client.security.tokens.PasswordToken;
import org.apache.accumulo.core.data.Mutation;
import org.apache.accumulo.core.security.Authorizations;
import org.apache.accumulo.core.security.TablePermission;
import org.apache.accumulo.minicluster.ServerType;
import org.apache.accumulo.miniclusterImpl.MiniAccumuloClusterImpl;
import org.apache.accumulo.miniclusterImpl.MiniAccumuloConfigImpl;
import org.apache.hadoop.io.Text;

/**
 * Accumulo's mini cluster, whose manager and tablet servers are processes: AccumuloCheck DIRECTORY ZOOKEEPER GO_ON. It
 * waits for the file GO_ON, while the caller kills servers.
 */
public class AccumuloCheck {
    static long rows(AccumuloClient c, String table) throws Exception {
        long n = 0;
        try (Scanner s = c.createScanner(table, Authorizations.EMPTY)) {
            for (var ignored : s) {
                n++;
            }
        }
        return n;
    }

    static void write(AccumuloClient c, String table, int from, int to) throws Exception {
        try (BatchWriter w = c.createBatchWriter(table)) {
            for (int i = from; i < to; i++) {
                Mutation m = new Mutation(String.format("%06d", i));
                m.put("f", "q", "v" + i);
                w.addMutation(m);
            }
        }
    }

    static void check(String name, boolean good) {
        System.out.println("CHECK " + (good ? "ok " : "failed ") + name);
    }

    public static void main(String[] a) throws Exception {
        MiniAccumuloConfigImpl conf = new MiniAccumuloConfigImpl(new File(a[0]), "secret");
        conf.setExistingZooKeepers(a[1]);
        conf.setNumTservers(2);
        conf.setProperty("instance.zookeeper.timeout", "10s");
        MiniAccumuloClusterImpl cluster = new MiniAccumuloClusterImpl(conf);
        // Hadoop's default for local files adds checksums, and then a log lacks its end when its server is killed.
        Files.writeString(conf.getConfDir().toPath().resolve("core-site.xml"), "<configuration><property><name>fs.file.impl</name>"
            + "<value>org.apache.hadoop.fs.RawLocalFileSystem</value></property></configuration>");
        cluster.start();
        try (AccumuloClient c = Accumulo.newClient().to(cluster.getInstanceName(), a[1]).as("root", new PasswordToken("secret")).build()) {
            before(cluster, c);
            System.out.println("WAITS");
            while (!Files.exists(Path.of(a[2]))) {
                Thread.sleep(200);
            }
            after(c);
        }
        cluster.stop();
        System.exit(0);
    }

    static void before(MiniAccumuloClusterImpl cluster, AccumuloClient c) throws Exception {
        check("two tablet servers run", c.instanceOperations().getTabletServers().size() == 2);
        c.tableOperations().create("t");
        write(c, "t", 0, 5000);
        check("write and scan 5000 rows", rows(c, "t") == 5000);
        c.tableOperations().setProperty("t", "table.split.threshold", "64K");
        check("a table's property is stored", "64K".equals(c.tableOperations().getConfiguration("t").get("table.split.threshold")));
        c.tableOperations().addSplits("t", new TreeSet<>(List.of(new Text("002500"))));
        check("split a table", c.tableOperations().listSplits("t").contains(new Text("002500")));
        c.securityOperations().createLocalUser("alice", new PasswordToken("pw"));
        c.securityOperations().grantTablePermission("alice", "t", TablePermission.READ);
        check("users and permissions are stored", c.securityOperations().hasTablePermission("alice", "t", TablePermission.READ)
            && !c.securityOperations().hasTablePermission("alice", "t", TablePermission.WRITE)
            && c.securityOperations().authenticateUser("alice", new PasswordToken("pw")));
        cluster.killProcess(ServerType.TABLET_SERVER, cluster.getProcesses().get(ServerType.TABLET_SERVER).iterator().next());
        check("the tablets of a killed tablet server move", rows(c, "t") == 5000);
        cluster.killProcess(ServerType.MANAGER, cluster.getProcesses().get(ServerType.MANAGER).iterator().next());
        cluster.getClusterControl().startAllServers(ServerType.MANAGER);
        c.tableOperations().create("created");
        check("a new manager takes over from a killed one", c.tableOperations().exists("created"));
    }

    static void after(AccumuloClient c) throws Exception {
        write(c, "t", 5000, 6000);
        check("write and scan after servers were killed", rows(c, "t") == 6000);
        c.tableOperations().clone("t", "u", true, Map.of(), Set.of());
        check("a FATE operation after that: clone a table", rows(c, "u") == 6000);
        c.tableOperations().rename("u", "v");
        c.tableOperations().delete("t");
        check("rename and delete tables", c.tableOperations().exists("v") && !c.tableOperations().exists("t") && !c.tableOperations().exists("u"));
    }
}

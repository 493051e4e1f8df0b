import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** One step of the checks of HBase: HBaseCheck STEP, with hbase-site.xml on the class path; prints a RESULT line. */
public class HBaseCheck {
    static final TableName BOOKS = TableName.valueOf("books");
    static final byte[] FAMILY = Bytes.toBytes("f");

    public static void main(String[] a) throws Exception {
        Configuration conf = HBaseConfiguration.create();
        conf.setInt("hbase.client.retries.number", 30);
        conf.setInt("hbase.client.operation.timeout", 120000);
        try (Connection c = ConnectionFactory.createConnection(conf); Admin admin = c.getAdmin()) {
            System.out.println("RESULT " + switch (a[0]) {
                case "servers" -> {
                    var m = admin.getClusterMetrics();
                    yield "master " + m.getMasterName().getPort() + " servers " + ports(m.getLiveServerMetrics().keySet())
                        + " backups " + ports(m.getBackupMasterNames());
                }
                case "create" -> {
                    byte[][] splits = {Bytes.toBytes("3"), Bytes.toBytes("6")};
                    admin.createTable(TableDescriptorBuilder.newBuilder(BOOKS).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build(), splits);
                    yield "regions " + admin.getRegions(BOOKS).size();
                }
                case "put" -> "put " + put(c, Integer.parseInt(a[1]), Integer.parseInt(a[2]));
                case "count" -> {
                    int n = 0;
                    try (Table t = c.getTable(BOOKS); ResultScanner s = t.getScanner(new Scan())) {
                        for (Result ignored : s) {
                            n++;
                        }
                    }
                    yield "rows " + n;
                }
                case "snapshot" -> {
                    admin.snapshot("snapshot", BOOKS);
                    yield "snapshots " + admin.listSnapshots().size();
                }
                case "balance" -> {
                    admin.balancerSwitch(true, true);
                    admin.balance(); // it may have nothing to do
                    yield admin.isBalancerEnabled() ? "balanced" : "off";
                }
                case "drop" -> {
                    admin.disableTable(BOOKS);
                    admin.deleteTable(BOOKS);
                    yield admin.tableExists(BOOKS) ? "exists" : "dropped";
                }
                default -> throw new IllegalArgumentException(a[0]);
            });
        }
    }

    static List<Integer> ports(java.util.Collection<ServerName> servers) {
        return servers.stream().map(ServerName::getPort).sorted().toList();
    }

    /** Puts rows and doesn't flush them: a server that dies has them in its log. */
    static int put(Connection c, int from, int to) throws Exception {
        List<Put> puts = new ArrayList<>();
        for (int i = from; i < to; i++) {
            puts.add(new Put(Bytes.toBytes(i % 10 + "-" + i)).addColumn(FAMILY, Bytes.toBytes("q"), Bytes.toBytes(i)));
        }
        try (Table t = c.getTable(BOOKS)) {
            t.put(puts);
        }
        return puts.size();
    }
}

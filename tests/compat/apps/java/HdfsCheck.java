import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Writes a file to HDFS, and reads all files: HdfsCheck NAME; the content of a file is its name. */
public class HdfsCheck {
    public static void main(String[] a) throws Exception {
        Configuration conf = new Configuration();
        conf.addResource("hdfs-site.xml");
        try (FileSystem fs = FileSystem.get(conf)) {
            try (FSDataOutputStream out = fs.create(new Path("/checks", a[0]), true)) {
                out.write(a[0].getBytes(StandardCharsets.UTF_8));
            }
            int n = 0;
            for (FileStatus s : fs.listStatus(new Path("/checks"))) {
                try (FSDataInputStream in = fs.open(s.getPath())) {
                    String got = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                    if (!got.equals(s.getPath().getName())) {
                        throw new IllegalStateException(s.getPath() + " has " + got);
                    }
                }
                n++;
            }
            System.out.println("RESULT " + n + " files");
        }
    }
}

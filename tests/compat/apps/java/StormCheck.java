import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.KillOptions;
import org.apache.storm.generated.Nimbus;
import org.apache.storm.generated.TopologyInfo;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.NimbusClient;
import org.apache.storm.utils.Utils;

/**
 * A topology for Storm, and questions to nimbus: StormCheck submit DIRECTORY, workers, activate, deactivate or kill; prints
 * a RESULT line. Each spout writes how many of its tuples were acknowledged to a file in DIRECTORY.
 */
public class StormCheck {
    public static class Numbers extends BaseRichSpout {
        private transient SpoutOutputCollector out;
        private transient Path file;
        private long sent;
        private long acked;

        @Override
        public void open(Map<String, Object> conf, TopologyContext t, SpoutOutputCollector o) {
            out = o;
            file = Path.of((String) conf.get("check.counts"), t.getThisTaskId() + "-" + System.currentTimeMillis() + ".acked");
        }

        @Override
        public void nextTuple() {
            out.emit(new Values(sent), sent++);
            Utils.sleep(5);
        }

        @Override
        public void ack(Object id) {
            if (++acked % 20 != 0) {
                return;
            }
            try {
                Path next = file.resolveSibling(file.getFileName() + ".new");
                Files.writeString(next, Long.toString(acked));
                Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer d) { d.declare(new Fields("n")); }
    }

    public static class Sink extends BaseBasicBolt {
        @Override
        public void execute(Tuple t, BasicOutputCollector o) { }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer d) { }
    }

    static String submit(String counts) throws Exception {
        TopologyBuilder b = new TopologyBuilder();
        b.setSpout("numbers", new Numbers(), 2);
        b.setBolt("sink", new Sink(), 3).shuffleGrouping("numbers");
        Config conf = new Config();
        conf.setNumWorkers(2);
        conf.setMaxSpoutPending(100);
        conf.put("check.counts", counts);
        StormSubmitter.submitTopology("demo", conf, b.createTopology());
        return "submitted";
    }

    static TopologyInfo info(Nimbus.Iface nimbus) throws Exception {
        return nimbus.getTopologyInfo(nimbus.getTopologySummaries().get(0).get_id());
    }

    public static void main(String[] a) throws Exception {
        String result;
        if (a[0].equals("submit")) {
            result = submit(a[1]);
        } else {
            try (NimbusClient client = NimbusClient.Builder.withConf(Utils.readStormConfig()).build()) {
                Nimbus.Iface nimbus = client.getClient();
                result = switch (a[0]) {
                    case "workers" -> {
                        long used = nimbus.getClusterInfo().get_supervisors().stream().filter(s -> s.get_num_used_workers() > 0).count();
                        yield nimbus.getTopologySummaries().get(0).get_num_workers() + " workers on " + used + " supervisors";
                    }
                    case "activate" -> {
                        nimbus.activate("demo");
                        yield info(nimbus).get_status();
                    }
                    case "deactivate" -> {
                        nimbus.deactivate("demo");
                        yield info(nimbus).get_status();
                    }
                    case "kill" -> {
                        KillOptions now = new KillOptions();
                        now.set_wait_secs(1);
                        nimbus.killTopologyWithOpts("demo", now);
                        yield "killed";
                    }
                    default -> throw new IllegalArgumentException(a[0]);
                };
            }
        }
        System.out.println("\nRESULT " + result); // Storm's own log lines have no end
        System.exit(0);
    }
}

import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** Submits an endless job, to the JobManager that ZooKeeper names: FlinkCheck; prints its id. */
public class FlinkCheck {
    static long slowly(long n) throws InterruptedException {
        Thread.sleep(5);
        return n;
    }

    public static void main(String[] a) throws Exception {
        StreamExecutionEnvironment env = new StreamExecutionEnvironment(GlobalConfiguration.loadConfiguration());
        env.fromSequence(0, Long.MAX_VALUE).map(FlinkCheck::slowly).sinkTo(new DiscardingSink<>());
        System.out.println("RESULT " + env.executeAsync("demo").getJobID());
        System.exit(0);
    }
}

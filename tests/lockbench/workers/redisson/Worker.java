import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Competes for Redisson's RLock; its flags and its result are those of package load. */
public class Worker {
  record Holding(int client, long asked, long held, long released) {}

  public static void main(String[] args) throws Exception {
    Map<String, String> flags = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      flags.put(args[i].replaceFirst("^-+", ""), args[i + 1]);
    }
    int n = Integer.parseInt(flags.get("clients"));
    boolean own = flags.get("shape").equals("own");
    RedissonClient[] clients = new RedissonClient[n];
    for (int i = 0; i < n; i++) {
      Config config = new Config();
      config.setThreads(2).setNettyThreads(2);
      config.useSingleServer().setAddress("redis://" + flags.get("addrs"))
          .setConnectionMinimumIdleSize(1).setConnectionPoolSize(2)
          .setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(2);
      clients[i] = Redisson.create(config);
    }
    long from = System.nanoTime() + nanos(flags.get("warm"));
    long until = from + nanos(flags.get("for"));
    List<List<Holding>> all = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      int client = i;
      List<Holding> mine = new ArrayList<>();
      all.add(mine);
      RLock lock = clients[i].getLock(flags.get("root") + "-redisson-" + (own ? "own" + i : "shared"));
      Thread t = new Thread(() -> {
        for (;;) {
          long asked = System.nanoTime();
          if (asked > until) {
            return;
          }
          lock.lock();
          long held = System.nanoTime();
          long released = System.nanoTime();
          mine.add(new Holding(client, asked, held, released));
          lock.unlock();
          if (flags.get("shape").equals("rested")) {
            try {
              Thread.sleep(20);
            } catch (InterruptedException e) {
              return;
            }
          }
        }
      });
      threads.add(t);
      t.start();
    }
    for (Thread t : threads) {
      t.join();
    }
    for (RedissonClient c : clients) {
      c.shutdown(0, 1, java.util.concurrent.TimeUnit.SECONDS);
    }
    print(all, own, from, until);
    System.exit(0);
  }

  /** A duration as the runner writes it: in milliseconds. */
  static long nanos(String millis) {
    return Long.parseLong(millis.replace("ms", "")) * 1_000_000;
  }

  static void print(List<List<Holding>> all, boolean own, long from, long until) {
    List<Holding> line = new ArrayList<>();
    all.forEach(line::addAll);
    line.sort((a, b) -> Long.compare(a.held, b.held));
    List<Double> handOffs = new ArrayList<>();
    List<Double> waits = new ArrayList<>();
    int acquisitions = 0;
    int overlaps = 0;
    for (int i = 0; i < line.size(); i++) {
      Holding h = line.get(i);
      if (h.held < from || h.held > until) {
        continue;
      }
      acquisitions++;
      waits.add((h.held - h.asked) / 1e3);
      if (own || i == 0) {
        continue;
      }
      Holding before = line.get(i - 1);
      if (before.released > h.held) {
        overlaps++;
      }
      if (before.client != h.client) {
        handOffs.add((h.held - before.released) / 1e3);
      }
    }
    System.out.printf("{\"Acquisitions\":%d,\"Seconds\":%s,\"HandOffs\":%d,\"HandOff50\":%s,\"HandOff99\":%s,"
        + "\"Wait50\":%s,\"Wait99\":%s,\"WaitMax\":%s,\"Overlaps\":%d}%n", acquisitions, (until - from) / 1e9, handOffs.size(),
        quantile(handOffs, 50), quantile(handOffs, 99), quantile(waits, 50), quantile(waits, 99), quantile(waits, 100), overlaps);
  }

  static double quantile(List<Double> samples, int percent) {
    if (samples.isEmpty()) {
      return 0;
    }
    double[] s = samples.stream().mapToDouble(Double::doubleValue).toArray();
    Arrays.sort(s);
    return s[Math.min(s.length * percent / 100, s.length - 1)];
  }
}

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Competes for Redisson's RLock; its flags are those of package load. It prints what happened. */
public class Worker {
  record Holding(int client, long asked, long held, long released) {}

  public static void main(String[] args) throws Exception {
    Map<String, String> flags = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      flags.put(args[i].replaceFirst("^-+", ""), args[i + 1]);
    }
    int n = Integer.parseInt(flags.get("clients"));
    boolean own = flags.get("shape").equals("own");
    boolean works = flags.get("shape").equals("worked");
    RedissonClient[] clients = new RedissonClient[n];
    for (int i = 0; i < n; i++) {
      Config config = new Config();
      config.setThreads(2).setNettyThreads(2);
      config.useSingleServer().setAddress("redis://" + flags.get("addrs"))
          .setConnectionMinimumIdleSize(1).setConnectionPoolSize(2)
          .setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(2);
      clients[i] = Redisson.create(config);
      RLock first = clients[i].getLock("first"); // loads classes and connects
      first.lock();
      first.unlock();
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
          if (works) {
            pause(5);
          }
          long released = System.nanoTime();
          mine.add(new Holding(client, asked, held, released));
          lock.unlock();
          if (works) {
            pause(20);
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
    print(all, from, until);
    System.exit(0);
  }

  /** A duration as the runner writes it: in milliseconds. */
  static long nanos(String millis) {
    return Long.parseLong(millis.replace("ms", "")) * 1_000_000;
  }

  static void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  static void print(List<List<Holding>> all, long from, long until) {
    StringBuilder b = new StringBuilder();
    for (List<Holding> list : all) {
      for (Holding h : list) {
        b.append(b.length() == 0 ? "" : ",");
        b.append('[').append(h.client).append(',').append(h.asked).append(',').append(h.held).append(',').append(h.released).append(']');
      }
    }
    System.out.println("{\"From\":" + from + ",\"Until\":" + until + ",\"Holdings\":[" + b + "]}");
  }
}

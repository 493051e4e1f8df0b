import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;

/** Runs named checks and prints a line for each: "ok NAME" or "FAIL NAME: why". */
final class Checks {
    /** How long anything that should happen may take. */
    static final Duration LIMIT = Duration.ofSeconds(60);

    interface Body {
        void run(CuratorFramework client) throws Exception;
    }

    private final String servers;
    private int failures;

    Checks(String servers) {
        this.servers = servers;
    }

    /** A started client of its own session. */
    CuratorFramework client() {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(20_000)
                .connectionTimeoutMs(20_000)
                .retryPolicy(new RetryOneTime(100))
                .build();
        client.start();
        return client;
    }

    void check(String name, Body body) {
        try (CuratorFramework client = client()) {
            body.run(client);
            System.out.println("ok " + name);
        } catch (Throwable e) {
            failures++;
            System.out.println("FAIL " + name + ": " + e);
            for (StackTraceElement frame : e.getStackTrace()) {
                if (!frame.getClassName().startsWith("java.")) System.out.println("    " + frame);
            }
        }
        System.out.flush();
    }

    int failures() {
        return failures;
    }

    static void same(Object want, Object got) {
        if (!Objects.equals(want, got)) throw new AssertionError("want " + want + ", got " + got);
    }

    static void that(boolean good, String what) {
        if (!good) throw new AssertionError("not so: " + what);
    }

    /** Waits until the value is what it should be. */
    static <T> void eventually(T want, Callable<T> value) throws Exception {
        long until = System.nanoTime() + LIMIT.toNanos();
        T got = value.call();
        while (!Objects.equals(want, got)) {
            if (System.nanoTime() > until) throw new AssertionError("want " + want + ", still " + got);
            Thread.sleep(10);
            got = value.call();
        }
    }

    /** Runs a body that must throw this very exception. */
    static void refuses(Class<? extends Exception> kind, Callable<?> body) throws Exception {
        try {
            body.call();
        } catch (Exception e) {
            if (e.getClass() == kind) return;
            throw e;
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }
}

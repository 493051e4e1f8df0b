import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicValue;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.retry.RetryNTimes;

/** Counters and values that sessions share. */
final class Counters {
    static void all(Checks checks) {
        checks.check("DistributedAtomicLong", client -> atomicLong(checks, client));
        checks.check("DistributedAtomicValue", client -> atomicValue(client));
        checks.check("CachedAtomicLong", client -> cached(client));
        checks.check("SharedCount", client -> sharedCount(checks, client));
        checks.check("SharedValue", client -> sharedValue(checks, client));
    }

    private static void atomicLong(Checks checks, CuratorFramework client) throws Exception {
        int threads = 4;
        int each = 25;
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> futures = new ArrayList<>();
        PromotedToLock lock = PromotedToLock.builder().lockPath("/counters/lock").retryPolicy(new RetryNTimes(1000, 5)).timeout(60, TimeUnit.SECONDS).build();
        for (int t = 0; t < threads; t++) {
            futures.add(pool.submit(() -> {
                try (CuratorFramework own = checks.client()) {
                    DistributedAtomicLong counter = new DistributedAtomicLong(own, "/counters/long", new RetryNTimes(10, 5), lock);
                    for (int i = 0; i < each; i++) Checks.that(counter.increment().succeeded(), "an increment");
                }
                return null;
            }));
        }
        for (Future<?> future : futures) future.get(120, TimeUnit.SECONDS);
        pool.shutdown();
        client.sync().forPath("/counters");
        Checks.same((long) threads * each, new DistributedAtomicLong(client, "/counters/long", new RetryNTimes(10, 5)).get().postValue());
    }

    private static void atomicValue(CuratorFramework client) throws Exception {
        DistributedAtomicValue value = new DistributedAtomicValue(client, "/counters/value", new RetryNTimes(10, 5));
        value.initialize(Nodes.bytes("a"));
        AtomicValue<byte[]> swapped = value.compareAndSet(Nodes.bytes("a"), Nodes.bytes("b"));
        Checks.that(swapped.succeeded(), "a to b");
        Checks.that(!value.compareAndSet(Nodes.bytes("a"), Nodes.bytes("c")).succeeded(), "a is gone");
        Checks.same("b", new String(value.get().postValue()));
    }

    private static void cached(CuratorFramework client) throws Exception {
        DistributedAtomicLong counter = new DistributedAtomicLong(client, "/counters/cached", new RetryNTimes(10, 5));
        CachedAtomicLong cache = new CachedAtomicLong(counter, 10);
        for (long i = 0; i < 25; i++) Checks.same(i, cache.next().preValue());
        Checks.same(30L, counter.get().postValue());
    }

    private static void sharedCount(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                SharedCount mine = new SharedCount(client, "/counters/shared", 5);
                SharedCount theirs = new SharedCount(other, "/counters/shared", 5)) {
            mine.start();
            theirs.start();
            Checks.same(5, theirs.getCount());
            mine.setCount(6);
            Checks.eventually(6, theirs::getCount);
            Checks.eventually(true, () -> theirs.trySetCount(theirs.getVersionedValue(), 7));
            Checks.eventually(7, mine::getCount);
        }
    }

    private static void sharedValue(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                SharedValue mine = new SharedValue(client, "/counters/shared-value", Nodes.bytes("a"));
                SharedValue theirs = new SharedValue(other, "/counters/shared-value", Nodes.bytes("a"))) {
            mine.start();
            theirs.start();
            mine.setValue(Nodes.bytes("b"));
            Checks.eventually("b", () -> new String(theirs.getValue()));
        }
    }
}

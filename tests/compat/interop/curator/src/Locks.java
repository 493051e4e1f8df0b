import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** Locks, semaphores and barriers, each between sessions of their own. */
final class Locks {
    static void all(Checks checks) {
        checks.check("InterProcessMutex", client -> mutex(checks, client));
        checks.check("InterProcessMutex under contention", client -> contention(checks));
        checks.check("InterProcessMutex, revoked", client -> revoked(checks, client));
        checks.check("InterProcessMutex of a session that ends", client -> ended(checks, client));
        checks.check("InterProcessSemaphoreMutex", client -> semaphoreMutex(checks, client));
        checks.check("InterProcessReadWriteLock", client -> readWrite(checks, client));
        checks.check("InterProcessSemaphoreV2", client -> semaphore(checks, client));
        checks.check("InterProcessMultiLock", client -> multiLock(checks, client));
        checks.check("DistributedBarrier", client -> barrier(checks, client));
        checks.check("DistributedDoubleBarrier", client -> doubleBarrier(checks));
    }

    private static void mutex(Checks checks, CuratorFramework client) throws Exception {
        InterProcessMutex mine = new InterProcessMutex(client, "/locks/mutex");
        try (CuratorFramework other = checks.client()) {
            InterProcessMutex theirs = new InterProcessMutex(other, "/locks/mutex");
            mine.acquire();
            mine.acquire(); // reentrant
            Checks.same(false, theirs.acquire(200, TimeUnit.MILLISECONDS));
            mine.release();
            Checks.same(false, theirs.acquire(200, TimeUnit.MILLISECONDS));
            mine.release();
            Checks.same(true, theirs.acquire(60, TimeUnit.SECONDS));
            Checks.same(1, mine.getParticipantNodes().size());
            theirs.release();
        }
    }

    private static void contention(Checks checks) throws Exception {
        int threads = 8;
        AtomicInteger inside = new AtomicInteger();
        AtomicBoolean overlapped = new AtomicBoolean();
        AtomicInteger turns = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> futures = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            futures.add(pool.submit(() -> {
                try (CuratorFramework client = checks.client()) {
                    InterProcessMutex lock = new InterProcessMutex(client, "/locks/contended");
                    for (int i = 0; i < 10; i++) {
                        lock.acquire();
                        if (inside.incrementAndGet() != 1) overlapped.set(true);
                        turns.incrementAndGet();
                        inside.decrementAndGet();
                        lock.release();
                    }
                }
                return null;
            }));
        }
        for (Future<?> future : futures) future.get(120, TimeUnit.SECONDS);
        pool.shutdown();
        Checks.same(false, overlapped.get());
        Checks.same(10 * threads, turns.get());
    }

    private static void revoked(Checks checks, CuratorFramework client) throws Exception {
        AtomicBoolean asked = new AtomicBoolean();
        InterProcessMutex mine = new InterProcessMutex(client, "/locks/revoked");
        mine.makeRevocable(lock -> asked.set(true));
        mine.acquire();
        try (CuratorFramework other = checks.client()) {
            other.sync().forPath("/locks");
            Collection<String> holders = new InterProcessMutex(other, "/locks/revoked").getParticipantNodes();
            Checks.same(1, holders.size());
            org.apache.curator.framework.recipes.locks.Revoker.attemptRevoke(other, holders.iterator().next());
            Checks.eventually(true, asked::get);
        }
        mine.release();
    }

    private static void ended(Checks checks, CuratorFramework client) throws Exception {
        CuratorFramework other = checks.client();
        new InterProcessMutex(other, "/locks/ended").acquire();
        InterProcessMutex mine = new InterProcessMutex(client, "/locks/ended");
        Checks.same(false, mine.acquire(200, TimeUnit.MILLISECONDS));
        other.close();
        Checks.same(true, mine.acquire(60, TimeUnit.SECONDS));
        mine.release();
    }

    private static void semaphoreMutex(Checks checks, CuratorFramework client) throws Exception {
        InterProcessSemaphoreMutex mine = new InterProcessSemaphoreMutex(client, "/locks/semaphore-mutex");
        mine.acquire();
        try (CuratorFramework other = checks.client()) {
            InterProcessSemaphoreMutex theirs = new InterProcessSemaphoreMutex(other, "/locks/semaphore-mutex");
            Checks.same(false, theirs.acquire(200, TimeUnit.MILLISECONDS));
            mine.release();
            Checks.same(true, theirs.acquire(60, TimeUnit.SECONDS));
            theirs.release();
        }
    }

    private static void readWrite(Checks checks, CuratorFramework client) throws Exception {
        InterProcessReadWriteLock mine = new InterProcessReadWriteLock(client, "/locks/rw");
        try (CuratorFramework other = checks.client()) {
            InterProcessReadWriteLock theirs = new InterProcessReadWriteLock(other, "/locks/rw");
            mine.readLock().acquire();
            Checks.same(true, theirs.readLock().acquire(60, TimeUnit.SECONDS));
            Checks.same(false, theirs.writeLock().acquire(200, TimeUnit.MILLISECONDS));
            theirs.readLock().release();
            mine.readLock().release();
            Checks.same(true, theirs.writeLock().acquire(60, TimeUnit.SECONDS));
            Checks.same(true, theirs.readLock().acquire(60, TimeUnit.SECONDS)); // a writer may read
            Checks.same(false, mine.readLock().acquire(200, TimeUnit.MILLISECONDS));
            theirs.readLock().release();
            theirs.writeLock().release();
            Checks.same(true, mine.readLock().acquire(60, TimeUnit.SECONDS));
            mine.readLock().release();
        }
    }

    private static void semaphore(Checks checks, CuratorFramework client) throws Exception {
        InterProcessSemaphoreV2 mine = new InterProcessSemaphoreV2(client, "/locks/semaphore", 3);
        try (CuratorFramework other = checks.client()) {
            InterProcessSemaphoreV2 theirs = new InterProcessSemaphoreV2(other, "/locks/semaphore", 3);
            Collection<Lease> two = mine.acquire(2);
            Lease third = theirs.acquire(60, TimeUnit.SECONDS);
            Checks.that(third != null, "a third lease");
            Checks.same(null, theirs.acquire(200, TimeUnit.MILLISECONDS));
            mine.returnAll(two);
            Collection<Lease> more = theirs.acquire(2, 60, TimeUnit.SECONDS);
            Checks.that(more != null, "what was returned");
            theirs.returnAll(more);
            theirs.returnLease(third);
        }
    }

    private static void multiLock(Checks checks, CuratorFramework client) throws Exception {
        List<String> paths = List.of("/locks/multi-a", "/locks/multi-b");
        InterProcessMultiLock mine = new InterProcessMultiLock(client, paths);
        try (CuratorFramework other = checks.client()) {
            InterProcessMutex one = new InterProcessMutex(other, "/locks/multi-b");
            one.acquire();
            Checks.same(false, mine.acquire(200, TimeUnit.MILLISECONDS));
            one.release();
            Checks.same(true, mine.acquire(60, TimeUnit.SECONDS));
            mine.release();
        }
    }

    private static void barrier(Checks checks, CuratorFramework client) throws Exception {
        DistributedBarrier mine = new DistributedBarrier(client, "/locks/barrier");
        mine.setBarrier();
        try (CuratorFramework other = checks.client()) {
            DistributedBarrier theirs = new DistributedBarrier(other, "/locks/barrier");
            other.sync().forPath("/locks");
            Checks.same(false, theirs.waitOnBarrier(200, TimeUnit.MILLISECONDS));
            mine.removeBarrier();
            Checks.same(true, theirs.waitOnBarrier(60, TimeUnit.SECONDS));
        }
    }

    private static void doubleBarrier(Checks checks) throws Exception {
        int members = 5;
        AtomicInteger entered = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(members);
        List<Future<Boolean>> futures = new ArrayList<>();
        for (int i = 0; i < members; i++) {
            futures.add(pool.submit(() -> {
                try (CuratorFramework client = checks.client()) {
                    DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, "/locks/double", members);
                    entered.incrementAndGet();
                    boolean in = barrier.enter(60, TimeUnit.SECONDS);
                    boolean all = entered.get() == members;
                    return in && all && barrier.leave(60, TimeUnit.SECONDS);
                }
            }));
        }
        for (Future<Boolean> future : futures) Checks.same(true, future.get(120, TimeUnit.SECONDS));
        pool.shutdown();
    }
}

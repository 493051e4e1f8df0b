import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;

/** Elections. */
final class Leaders {
    static void all(Checks checks) {
        checks.check("LeaderLatch", client -> latch(checks));
        checks.check("LeaderSelector", client -> selector(checks));
    }

    private static void latch(Checks checks) throws Exception {
        List<CuratorFramework> clients = new ArrayList<>();
        List<LeaderLatch> latches = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            CuratorFramework client = checks.client();
            LeaderLatch latch = new LeaderLatch(client, "/leaders/latch", "candidate-" + i);
            latch.start();
            Checks.eventually(true, () -> !latch.getLeader().getId().isEmpty());
            clients.add(client);
            latches.add(latch);
        }
        for (int i = 0; i < 4; i++) {
            // They lead in the order in which they came; half of them just lose their session.
            LeaderLatch leader = latches.get(i);
            Checks.that(leader.await(60, TimeUnit.SECONDS), "candidate " + i + " leads");
            Checks.eventually("candidate-" + i, () -> leader.getLeader().getId());
            int left = 4 - i;
            Checks.eventually(left, () -> leader.getParticipants().size());
            if (i % 2 == 0) leader.close();
            clients.get(i).close();
        }
    }

    private static void selector(Checks checks) throws Exception {
        int candidates = 4;
        AtomicInteger leading = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch turns = new CountDownLatch(3 * candidates);
        List<CuratorFramework> clients = new ArrayList<>();
        List<LeaderSelector> selectors = new ArrayList<>();
        for (int i = 0; i < candidates; i++) {
            CuratorFramework client = checks.client();
            LeaderSelector selector = new LeaderSelector(client, "/leaders/selector", new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework c) {
                    most.accumulateAndGet(leading.incrementAndGet(), Math::max);
                    leading.decrementAndGet();
                    turns.countDown();
                }
            });
            selector.autoRequeue();
            selector.start();
            clients.add(client);
            selectors.add(selector);
        }
        Checks.that(turns.await(60, TimeUnit.SECONDS), "everybody had turns");
        Checks.same(1, most.get());
        selectors.forEach(LeaderSelector::close);
        clients.forEach(CuratorFramework::close);
    }
}

import java.util.Collection;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.zookeeper.server.quorum.QuorumPeer.QuorumServer;
import org.apache.zookeeper.server.quorum.flexible.QuorumVerifier;

/** What Curator knows of the servers and of the connection to them; service discovery. */
final class Ensembles {
    static void all(Checks checks) {
        checks.check("EnsembleTracker", Ensembles::tracker);
        checks.check("the configuration", Ensembles::configuration);
        checks.check("connection states", Ensembles::states);
        checks.check("service discovery", client -> discovery(checks, client));
    }

    private static void tracker(CuratorFramework client) throws Exception {
        // Its first read of /zookeeper/config gives it the members of the ensemble.
        Checks.eventually(3, () -> {
            QuorumVerifier config = client.getCurrentConfig();
            return config == null ? 0 : config.getAllMembers().size();
        });
        for (QuorumServer server : client.getCurrentConfig().getAllMembers().values()) Checks.that(server.clientAddr != null, "a client address of " + server);
    }

    private static void configuration(CuratorFramework client) throws Exception {
        String text = new String(client.getConfig().forEnsemble());
        List<String> kinds = text.lines().map(line -> line.replaceAll("=.*", "")).collect(Collectors.toList());
        Checks.same(List.of("server.1", "server.2", "server.3", "version"), kinds);
    }

    private static void states(CuratorFramework client) throws Exception {
        LinkedBlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
        Checks.that(client.blockUntilConnected(60, TimeUnit.SECONDS), "connected");
        client.getConnectionStateListenable().addListener((c, state) -> states.add(state));
        long before = client.getZookeeperClient().getZooKeeper().getSessionId();
        client.getZookeeperClient().getZooKeeper().getTestable().injectSessionExpiration();
        Checks.eventually(true, () -> states.contains(ConnectionState.LOST) || states.poll() == ConnectionState.LOST);
        Checks.eventually(true, () -> client.getZookeeperClient().isConnected());
        Checks.that(before != client.getZookeeperClient().getZooKeeper().getSessionId(), "a new session");
    }

    private static void discovery(Checks checks, CuratorFramework client) throws Exception {
        ServiceInstance<Void> instance = ServiceInstance.<Void>builder().name("service").id("one").address("127.0.0.1").port(8080).build();
        try (CuratorFramework other = checks.client();
                ServiceDiscovery<Void> mine = ServiceDiscoveryBuilder.builder(Void.class).client(client).basePath("/discovery").thisInstance(instance).build();
                ServiceDiscovery<Void> theirs = ServiceDiscoveryBuilder.builder(Void.class).client(other).basePath("/discovery").build()) {
            mine.start();
            theirs.start();
            // Another session reads from another server: what is written gets there, but when?
            Checks.eventually(List.of("service"), () -> List.copyOf(theirs.queryForNames()));
            Checks.eventually(1, () -> theirs.queryForInstances("service").size());
            Collection<ServiceInstance<Void>> found = theirs.queryForInstances("service");
            Checks.same(8080, found.iterator().next().getPort());
            try (ServiceProvider<Void> provider = theirs.serviceProviderBuilder().serviceName("service").build()) {
                provider.start();
                Checks.eventually(true, () -> provider.getInstance() != null);
                mine.unregisterService(instance);
                Checks.eventually(true, () -> provider.getInstance() == null);
            }
        }
    }
}

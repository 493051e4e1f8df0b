import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;
import org.apache.helix.NotificationContext;
import org.apache.helix.manager.zk.ZKHelixAdmin;
import org.apache.helix.model.BuiltInStateModelDefinitions;
import org.apache.helix.model.ExternalView;
import org.apache.helix.model.HelixConfigScope;
import org.apache.helix.model.InstanceConfig;
import org.apache.helix.model.Message;
import org.apache.helix.model.builder.HelixConfigScopeBuilder;
import org.apache.helix.participant.statemachine.StateModel;
import org.apache.helix.participant.statemachine.StateModelFactory;
import org.apache.helix.participant.statemachine.StateModelInfo;
import org.apache.helix.participant.statemachine.Transition;

/**
 * Helix in one program: HelixCheck ZOOKEEPER SECONDS GO_ON. A controller, a standby controller and four participants with
 * 24 partitions; participants and controllers leave. It waits for the file GO_ON, while the caller kills servers.
 */
public class HelixCheck {
    static final String CLUSTER = "demo";
    static final String STRATEGY = "org.apache.helix.controller.rebalancer.strategy.CrushEdRebalanceStrategy";

    @StateModelInfo(initialState = "OFFLINE", states = {"MASTER", "SLAVE", "DROPPED"})
    public static class Model extends StateModel {
        @Transition(from = "OFFLINE", to = "SLAVE")
        public void offlineToSlave(Message m, NotificationContext c) {}
        @Transition(from = "SLAVE", to = "MASTER")
        public void slaveToMaster(Message m, NotificationContext c) {}
        @Transition(from = "MASTER", to = "SLAVE")
        public void masterToSlave(Message m, NotificationContext c) {}
        @Transition(from = "SLAVE", to = "OFFLINE")
        public void slaveToOffline(Message m, NotificationContext c) {}
        @Transition(from = "OFFLINE", to = "DROPPED")
        public void offlineToDropped(Message m, NotificationContext c) {}
    }

    public static class Factory extends StateModelFactory<StateModel> {
        @Override
        public StateModel createNewStateModel(String resource, String partition) { return new Model(); }
    }

    static HelixManager participant(String zk, String name) throws Exception {
        HelixManager m = HelixManagerFactory.getZKHelixManager(CLUSTER, name, InstanceType.PARTICIPANT, zk);
        m.getStateMachineEngine().registerStateModelFactory("MasterSlave", new Factory());
        m.connect();
        return m;
    }

    static Map<String, Integer> roles(ZKHelixAdmin admin) {
        Map<String, Integer> n = new TreeMap<>();
        ExternalView v = admin.getResourceExternalView(CLUSTER, "db");
        if (v != null) {
            for (String p : v.getPartitionSet()) {
                v.getStateMap(p).values().forEach(s -> n.merge(s, 1, Integer::sum));
            }
        }
        return n;
    }

    static long limit;

    static boolean check(String name, boolean good) {
        System.out.println("CHECK " + (good ? "ok " : "failed ") + name);
        return good;
    }

    /** Waits for a condition; without it there is no point in further checks. */
    static void await(String name, Callable<Boolean> condition) throws Exception {
        long start = System.currentTimeMillis();
        boolean good;
        while (!(good = condition.call()) && System.currentTimeMillis() - start < limit) {
            Thread.sleep(200);
        }
        if (!check(name, good)) {
            System.exit(1);
        }
    }

    static void await(ZKHelixAdmin admin, String name, int masters, int slaves) throws Exception {
        await(name, () -> {
            Map<String, Integer> r = roles(admin);
            return r.getOrDefault("MASTER", 0) == masters && r.getOrDefault("SLAVE", 0) == slaves;
        });
    }

    /** Returns how many of a resource's partitions have a master. */
    static int masters(ZKHelixAdmin admin, String resource) {
        ExternalView v = admin.getResourceExternalView(CLUSTER, resource);
        return v == null ? 0 : (int) v.getPartitionSet().stream().filter(p -> v.getStateMap(p).containsValue("MASTER")).count();
    }

    public static void main(String[] a) throws Exception {
        String zk = a[0];
        limit = Long.parseLong(a[1]) * 1000;
        ZKHelixAdmin admin = new ZKHelixAdmin.Builder().setZkAddress(zk).build();
        check("create a cluster", admin.addCluster(CLUSTER, true));
        admin.addStateModelDef(CLUSTER, "MasterSlave", BuiltInStateModelDefinitions.MasterSlave.getStateModelDefinition());
        HelixConfigScope scope = new HelixConfigScopeBuilder(HelixConfigScope.ConfigScopeProperty.CLUSTER).forCluster(CLUSTER).build();
        admin.setConfig(scope, Map.of("color", "green"));
        for (int i = 0; i < 4; i++) {
            admin.addInstance(CLUSTER, new InstanceConfig("n" + i));
        }
        admin.addResource(CLUSTER, "db", 24, "MasterSlave", "FULL_AUTO", STRATEGY);
        admin.rebalance(CLUSTER, "db", 3);
        HelixManager[] p = new HelixManager[4];
        for (int i = 0; i < 4; i++) {
            p[i] = participant(zk, "n" + i);
        }
        HelixManager c1 = controller(zk, "c1");
        HelixManager c2 = controller(zk, "c2");
        check("one of two controllers leads", c1.isLeader() && !c2.isLeader());
        await(admin, "24 partitions have a master and two slaves", 24, 48);
        p[0].disconnect();
        await(admin, "a participant leaves, and others take its partitions", 24, 48);
        admin.enableInstance(CLUSTER, "n1", false);
        await(admin, "another one is disabled: one slave is missing", 24, 24);
        admin.enableInstance(CLUSTER, "n1", true);
        p[0] = participant(zk, "n0");
        await(admin, "both are back", 24, 48);
        c1.disconnect();
        await("the standby controller leads", c2::isLeader);
        check("the configuration is stored", "green".equals(admin.getConfig(scope, List.of("color")).get("color")));
        p[3].disconnect();
        await(admin, "the new controller rebalances", 24, 48);
        p[3] = participant(zk, "n3");
        admin.addResource(CLUSTER, "big", 200, "MasterSlave", "FULL_AUTO", STRATEGY);
        admin.rebalance(CLUSTER, "big", 3);
        await("200 more partitions have a master", () -> masters(admin, "big") == 200);
        admin.dropResource(CLUSTER, "big");
        await(admin, "the first resource is balanced", 24, 48);

        List<String> before = sessions(p);
        System.out.println("WAITS");
        while (!Files.exists(Path.of(a[2]))) {
            Thread.sleep(200);
        }
        check("participants keep their sessions while servers are killed", before.equals(sessions(p)));
        p[2].disconnect();
        await(admin, "after that, a participant leaves", 24, 48);
        for (HelixManager m : p) {
            m.disconnect();
        }
        c2.disconnect();
        admin.dropCluster(CLUSTER);
        check("the cluster is dropped", admin.getClusters().isEmpty());
        System.exit(0);
    }

    static HelixManager controller(String zk, String name) throws Exception {
        HelixManager m = HelixManagerFactory.getZKHelixManager(CLUSTER, name, InstanceType.CONTROLLER, zk);
        m.connect();
        return m;
    }

    /** Returns the session of each participant, or that it is not connected. */
    static List<String> sessions(HelixManager[] managers) {
        return Arrays.stream(managers).map(m -> m.isConnected() ? m.getSessionId() : "not connected").toList();
    }
}

import java.io.File;
import java.io.FileInputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/**
 * Gives every file of testdata/cases to ZooKeeper's own parser and writes its
 * verdict to verdicts.json, a line for each. record.sh runs it.
 */
public class Verdict {

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream("verdicts.json", "UTF-8");
        File[] cases = new File("testdata/cases").listFiles();
        Arrays.sort(cases);
        for (File file : cases) {
            out.println(verdict(file));
        }
        out.close();
    }

    static String verdict(File file) throws Exception {
        for (Object key : System.getProperties().keySet().toArray()) {
            if (key.toString().startsWith("zookeeper.")) {
                System.clearProperty(key.toString());
            }
        }
        QuorumPeerConfig.setStandaloneEnabled(true);
        QuorumPeerConfig.setReconfigEnabled(false);
        TreeMap<String, Object> v = new TreeMap<>();
        v.put("case", file.getName().replace(".cfg", ""));
        Properties raw = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            raw.load(in);
            TreeMap<String, Object> props = new TreeMap<>();
            raw.forEach((key, value) -> props.put(key.toString(), value.toString()));
            v.put("properties", props);
        } catch (IllegalArgumentException e) {
            // the parser below fails in the same way
        }
        QuorumPeerConfig config = new QuorumPeerConfig();
        try {
            config.parse(file.getPath());
            v.put("ok", fields(config));
        } catch (Throwable e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            v.put("error", e.getClass().getSimpleName());
            v.put("cause", cause.getClass().getSimpleName());
            v.put("message", String.valueOf(cause.getMessage()));
        }
        return json(v);
    }

    static TreeMap<String, Object> fields(QuorumPeerConfig c) throws Exception {
        TreeMap<String, Object> f = new TreeMap<>();
        f.put("tickTime", c.getTickTime());
        f.put("initLimit", c.getInitLimit());
        f.put("syncLimit", c.getSyncLimit());
        f.put("minSessionTimeout", c.getMinSessionTimeout());
        f.put("maxSessionTimeout", c.getMaxSessionTimeout());
        f.put("maxClientCnxns", c.getMaxClientCnxns());
        f.put("clientPortListenBacklog", c.getClientPortListenBacklog());
        f.put("dataDir", c.getDataDir().getPath());
        f.put("dataLogDir", c.getDataLogDir().getPath());
        f.put("clientPort", address(c.getClientPortAddress()));
        f.put("secureClientPort", address(c.getSecureClientPortAddress()));
        f.put("serverId", c.getServerId());
        f.put("peerType", c.getPeerType().toString().toLowerCase());
        f.put("snapRetainCount", c.getSnapRetainCount());
        f.put("purgeInterval", c.getPurgeInterval());
        f.put("standaloneEnabled", QuorumPeerConfig.isStandaloneEnabled());
        f.put("reconfigEnabled", QuorumPeerConfig.isReconfigEnabled());
        f.put("distributed", c.isDistributed());
        f.put("quorumListenOnAllIPs", c.getQuorumListenOnAllIPs());
        f.put("localSessionsEnabled", c.areLocalSessionsEnabled());
        f.put("localSessionsUpgradingEnabled", c.isLocalSessionsUpgradingEnabled());
        f.put("sslQuorum", c.isSslQuorum());
        f.put("portUnification", c.shouldUsePortUnification());
        f.put("multiAddressEnabled", c.isMultiAddressEnabled());
        f.put("metricsProvider", c.getMetricsProviderClassName());
        for (String name : new String[] {"quorumEnableSasl", "quorumServerRequireSasl", "quorumLearnerRequireSasl"}) {
            Field field = QuorumPeerConfig.class.getDeclaredField(name);
            field.setAccessible(true);
            f.put(name, field.get(c));
        }
        List<String> membership = new ArrayList<>(Arrays.asList(c.getQuorumVerifier().toString().split("\n")));
        membership.sort(null);
        f.put("membership", membership);
        return f;
    }

    static String address(java.net.InetSocketAddress a) {
        return a == null ? "" : a.getHostString() + " " + a.getPort();
    }

    static String json(Object v) {
        if (v instanceof TreeMap) {
            StringBuilder b = new StringBuilder();
            ((TreeMap<?, ?>) v).forEach((key, value) ->
                b.append(b.length() == 0 ? "" : ",").append(json(key)).append(":").append(json(value)));
            return "{" + b + "}";
        }
        if (v instanceof List) {
            StringBuilder b = new StringBuilder();
            ((List<?>) v).forEach(value -> b.append(b.length() == 0 ? "" : ",").append(json(value)));
            return "[" + b + "]";
        }
        if (v instanceof Number || v instanceof Boolean) {
            return v.toString();
        }
        StringBuilder b = new StringBuilder("\"");
        for (char ch : v.toString().toCharArray()) {
            if (ch == '"' || ch == '\\') {
                b.append('\\').append(ch);
            } else if (ch < ' ' || ch > '~') {
                b.append(String.format("\\u%04x", (int) ch));
            } else {
                b.append(ch);
            }
        }
        return b.append('"').toString();
    }
}

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;

/** The caches, each compared with what was written by another session. */
@SuppressWarnings("deprecation") // the older caches are what many programs still use
final class Caches {
    static void all(Checks checks) {
        checks.check("CuratorCache", client -> curatorCache(checks, client));
        checks.check("CuratorCache of one node", client -> singleNode(checks, client));
        checks.check("TreeCache", client -> treeCache(checks, client));
        checks.check("PathChildrenCache", client -> pathChildrenCache(checks, client));
        checks.check("NodeCache", client -> nodeCache(checks, client));
    }

    /** Writes a tree with changes of every kind; returns what is left of it. */
    private static Map<String, String> write(CuratorFramework client, String root) throws Exception {
        Map<String, String> left = new TreeMap<>();
        client.create().orSetData().creatingParentsIfNeeded().forPath(root, Nodes.bytes("root"));
        left.put(root, "root");
        for (int i = 0; i < 30; i++) {
            String path = root + "/n" + i;
            client.create().forPath(path, Nodes.bytes("first"));
            if (i % 3 == 0) client.setData().forPath(path, Nodes.bytes("second"));
            if (i % 5 == 0) {
                client.create().forPath(path + "/deep", Nodes.bytes("deep"));
                left.put(path + "/deep", "deep");
            }
            if (i % 5 == 1) {
                client.delete().forPath(path);
            } else {
                left.put(path, i % 3 == 0 ? "second" : "first");
            }
        }
        return left;
    }

    private static Map<String, String> contents(List<ChildData> cached) {
        Map<String, String> found = new TreeMap<>();
        for (ChildData node : cached) found.put(node.getPath(), new String(node.getData()));
        return found;
    }

    private static void curatorCache(Checks checks, CuratorFramework client) throws Exception {
        CountDownLatch filled = new CountDownLatch(1);
        client.create().creatingParentsIfNeeded().forPath("/caches/curator/before", Nodes.bytes("before"));
        try (CuratorFramework other = checks.client();
                CuratorCache cache = CuratorCache.build(client, "/caches/curator")) {
            cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(filled::countDown).build());
            cache.start();
            Checks.that(filled.await(60, TimeUnit.SECONDS), "the cache was filled");
            Map<String, String> want = write(other, "/caches/curator");
            want.put("/caches/curator/before", "before");
            Checks.eventually(want, () -> contents(cache.stream().collect(Collectors.toList())));
            other.delete().deletingChildrenIfNeeded().forPath("/caches/curator");
            Checks.eventually(0, cache::size);
        }
    }

    private static void singleNode(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                CuratorCache cache = CuratorCache.build(client, "/single", CuratorCache.Options.SINGLE_NODE_CACHE)) {
            cache.start();
            other.create().forPath("/single", Nodes.bytes("1"));
            other.create().forPath("/single/child", Nodes.bytes("x"));
            other.setData().forPath("/single", Nodes.bytes("2"));
            Checks.eventually("2", () -> cache.get("/single").map(d -> new String(d.getData())).orElse(""));
            Checks.same(1, cache.size());
            other.delete().deletingChildrenIfNeeded().forPath("/single");
            Checks.eventually(0, cache::size);
        }
    }

    private static Map<String, String> walk(TreeCache cache, String path) {
        Map<String, String> found = new TreeMap<>();
        if (cache.getCurrentData(path) == null) return found;
        found.put(path, new String(cache.getCurrentData(path).getData()));
        Map<String, ?> children = cache.getCurrentChildren(path);
        for (String name : children == null ? Collections.<String>emptySet() : children.keySet()) found.putAll(walk(cache, path + "/" + name));
        return found;
    }

    private static void treeCache(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                TreeCache cache = new TreeCache(client, "/caches/tree")) {
            cache.start();
            Map<String, String> want = write(other, "/caches/tree");
            Checks.eventually(want, () -> walk(cache, "/caches/tree"));
            other.delete().deletingChildrenIfNeeded().forPath("/caches/tree");
            Checks.eventually(Map.of(), () -> walk(cache, "/caches/tree"));
        }
    }

    private static void pathChildrenCache(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                PathChildrenCache cache = new PathChildrenCache(client, "/caches/children", true)) {
            cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
            Map<String, String> want = write(other, "/caches/children");
            want.keySet().removeIf(path -> path.equals("/caches/children") || path.endsWith("/deep"));
            Checks.eventually(want, () -> contents(cache.getCurrentData()));
            other.delete().deletingChildrenIfNeeded().forPath("/caches/children");
            Checks.eventually(0, () -> cache.getCurrentData().size());
        }
    }

    private static void nodeCache(Checks checks, CuratorFramework client) throws Exception {
        try (CuratorFramework other = checks.client();
                NodeCache cache = new NodeCache(client, "/node-cache")) {
            cache.start(true);
            other.create().forPath("/node-cache", Nodes.bytes("1"));
            Checks.eventually("1", () -> cache.getCurrentData() == null ? "" : new String(cache.getCurrentData().getData()));
            other.setData().forPath("/node-cache", Nodes.bytes("2"));
            Checks.eventually("2", () -> new String(cache.getCurrentData().getData()));
            other.delete().forPath("/node-cache");
            Checks.eventually(null, cache::getCurrentData);
        }
    }
}

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** A watch of every kind below a znode, and what each was told. */
final class Watches {
    private final String root;
    private final Map<String, List<String>> told = Collections.synchronizedMap(new TreeMap<>());

    Watches(String root) {
        this.root = root;
    }

    private Watcher watcher(String name) {
        List<String> events = Collections.synchronizedList(new ArrayList<>());
        told.put(name, events);
        return event -> {
            if (event.getType() != Watcher.Event.EventType.None) events.add(event.getType() + " " + event.getPath());
        };
    }

    /** Arms the watches; the znodes that Changes changes have to be there. */
    void arm(ZooKeeper zk) throws Exception {
        zk.getData(root + "/data", watcher("getData"), null);
        zk.exists(root + "/later", watcher("exists, not there"));
        zk.exists(root + "/gone", watcher("exists, there"));
        zk.getChildren(root + "/children", watcher("getChildren"));
        zk.getData(root + "/untouched", watcher("getData, untouched"), null);
    }

    /** Arms those that stay. */
    void armPersistent(ZooKeeper zk) throws Exception {
        zk.addWatch(root + "/children", watcher("persistent"), AddWatchMode.PERSISTENT);
        zk.addWatch(root, watcher("recursive"), AddWatchMode.PERSISTENT_RECURSIVE);
    }

    /** Waits until as many watches as that were told something, and returns what. */
    String told(int fired, String last) throws Exception {
        Servers.eventually(fired + " watches fire, and " + last + " is heard of", () -> {
            synchronized (told) {
                return told.values().stream().filter(events -> !events.isEmpty()).count() >= fired && told.toString().contains(last);
            }
        });
        synchronized (told) {
            return told.toString();
        }
    }
}

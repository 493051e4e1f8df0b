import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** A process that takes locks with Curator: see doc.go. Arguments: CONNECT REGISTER KIND:PATH:THREADS... */
public final class Locks {
    static final int SESSION_MS = 3000;
    // Longer than any hand-over takes: see locks.py.
    static final int PATIENCE_S = 20;
    static final int LEASES = 3;

    /** Somebody's turn: how it is released, and which znode stands for it. */
    record Turn(String mode, String node, Release release) {}

    interface Release {
        void run() throws Exception;
    }

    interface Source {
        Turn next(CuratorFramework client) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (String job : Arrays.copyOfRange(args, 2, args.length)) {
            String[] parts = job.split(":");
            for (int i = 0; i < Integer.parseInt(parts[2]); i++) {
                Worker worker = new Worker(args[0], args[1], parts[0], parts[1]);
                threads.add(new Thread(worker));
            }
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        System.exit(0);
    }

    /** The connection to the registers that the locks protect. */
    static final class Register {
        private final Socket socket;
        private final BufferedReader in;

        Register(String address, String line) throws IOException {
            int colon = address.lastIndexOf(':');
            socket = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
            socket.setTcpNoDelay(true);
            in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            ask("hello java " + ProcessHandle.current().pid() + " " + line);
        }

        String[] ask(String words) {
            try {
                socket.getOutputStream().write((words + "\n").getBytes(StandardCharsets.UTF_8));
                String answer = in.readLine();
                if (answer != null) return answer.split(" ");
            } catch (IOException err) {
                // as below
            }
            Runtime.getRuntime().halt(0); // the test is over
            return null;
        }
    }

    static final class Worker implements Runnable {
        private final String connect;
        private final String kind;
        private final String path;
        private final Register register;
        private int turns;

        Worker(String connect, String address, String kind, String path) throws IOException {
            this.connect = connect;
            this.kind = kind;
            this.path = path;
            register = new Register(address, path);
        }

        @Override
        public void run() {
            while (true) {
                try (CuratorFramework client = CuratorFrameworkFactory.newClient(connect, SESSION_MS, SESSION_MS / 2, new RetryForever(50))) {
                    client.start();
                    Source source = source(client);
                    while (turn(client, source)) {}
                    return;
                } catch (Exception err) { // whatever it was: a new session has no old znodes
                    register.ask("fail " + err.toString().replace('\n', ' '));
                }
            }
        }

        private Source source(CuratorFramework client) {
            switch (kind) {
                case "rw":
                    InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                    return c -> {
                        if (++turns % 4 == 0) {
                            InterProcessReadWriteLock.WriteLock write = both.writeLock();
                            acquired(write.acquire(PATIENCE_S, TimeUnit.SECONDS));
                            return new Turn("write", write.getLockPath(), write::release);
                        }
                        InterProcessReadWriteLock.ReadLock read = both.readLock();
                        acquired(read.acquire(PATIENCE_S, TimeUnit.SECONDS));
                        return new Turn("read", read.getLockPath(), read::release);
                    };
                case "semaphore":
                    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
                    return c -> {
                        Lease lease = semaphore.acquire(PATIENCE_S, TimeUnit.SECONDS);
                        acquired(lease != null);
                        return new Turn("lease", path + "/leases/" + lease.getNodeName(), () -> semaphore.returnLease(lease));
                    };
                default:
                    Mutex mutex = new Mutex(client, path);
                    return c -> {
                        acquired(mutex.acquire(PATIENCE_S, TimeUnit.SECONDS));
                        return new Turn("write", mutex.node(), mutex::release);
                    };
            }
        }

        private static void acquired(boolean yes) {
            if (!yes) throw new IllegalStateException("not acquired");
        }

        private boolean turn(CuratorFramework client, Source source) throws Exception {
            Turn turn = source.next(client);
            Stat stat = client.checkExists().forPath(turn.node());
            if (stat == null) {
                register.ask("fail lost before it was used");
                turn.release().run();
                return true;
            }
            int before = turn.mode().equals("write") ? value(client) : 0;
            String[] values = register.ask("enter " + turn.mode() + " " + stat.getCzxid() + " " + turn.node());
            if (turn.mode().equals("write")) {
                register.ask("plain " + (Integer.parseInt(values[0]) + 1));
                register.ask("fenced " + (values[1].equals("refused") ? 0 : Integer.parseInt(values[1]) + 1));
                register.ask("znode " + guarded(client, turn.node(), before + 1));
            }
            boolean on = register.ask("exit unaware")[0].equals("go");
            turn.release().run();
            return on;
        }

        private int value(CuratorFramework client) throws Exception {
            return Integer.parseInt(new String(client.getData().forPath("/data" + path), StandardCharsets.UTF_8));
        }

        /** Writes the protected znode, provided that the lock's znode is there. */
        private String guarded(CuratorFramework client, String node, int value) throws Exception {
            // Whoever was stopped writes in the session that he has now.
            client.checkExists().forPath("/data");
            byte[] data = Integer.toString(value).getBytes(StandardCharsets.UTF_8);
            try {
                // Not through Curator, which would repeat it after a lost reply.
                ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
                zk.multi(List.of(Op.check(node, -1), Op.setData("/data" + path, data, -1)));
                return "ok";
            } catch (KeeperException.NoNodeException | KeeperException.SessionExpiredException err) {
                return "refused";
            } catch (KeeperException err) {
                return "unknown";
            }
        }
    }

    /** Curator's lock, which tells its znode to subclasses only. */
    static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String node() {
            return getLockPath();
        }
    }
}

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** The servers of the ensemble: whoever started this program kills and starts them. */
final class Servers {
    /** How long anything that should happen may take. */
    static final long LIMIT = 60_000;

    final List<InetSocketAddress> addresses;
    private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

    Servers(List<InetSocketAddress> addresses) {
        this.addresses = addresses;
    }

    static List<InetSocketAddress> parse(String[] arguments) {
        List<InetSocketAddress> found = new ArrayList<>();
        for (String address : arguments) {
            String[] parts = address.split(":");
            found.add(new InetSocketAddress(parts[0], Integer.parseInt(parts[1])));
        }
        return found;
    }

    void kill(int server) throws Exception {
        ask("kill " + server);
    }

    void start(int server) throws Exception {
        ask("start " + server);
    }

    private void ask(String what) throws Exception {
        say(what);
        if (answers.readLine() == null) throw new IOException("nobody does: " + what);
    }

    /** What a server answers to four letters; empty when it does not. */
    String word(int server, String word) {
        try (Socket socket = new Socket()) {
            socket.connect(addresses.get(server), 5_000);
            socket.setSoTimeout(5_000);
            socket.getOutputStream().write(word.getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "";
        }
    }

    /** What srvr calls a server; empty when it does not serve. */
    String mode(int server) {
        return word(server, "srvr").lines().filter(line -> line.startsWith("Mode: ")).map(line -> line.substring(6)).findFirst().orElse("");
    }

    /** Waits until every server serves, and returns who leads. */
    int leader() throws Exception {
        int[] found = {-1};
        eventually("a leader", () -> {
            boolean all = true;
            for (int i = 0; i < addresses.size(); i++) {
                String mode = mode(i);
                if (mode.equals("leader")) found[0] = i;
                all = all && (mode.equals("leader") || mode.equals("follower"));
            }
            return all && found[0] >= 0;
        });
        return found[0];
    }

    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long until = System.nanoTime() + LIMIT * 1_000_000;
        while (!condition.call()) {
            if (System.nanoTime() > until) throw new AssertionError("not in time: " + what);
            Thread.sleep(20);
        }
    }

    /** Prints a line that is compared. */
    static void result(String name, Object value) {
        say("= " + name + ": " + value);
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

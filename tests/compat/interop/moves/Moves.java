import java.net.InetSocketAddress;
import java.util.List;

/**
 * ZooKeeper's own Java client while servers of an ensemble fail: what a session keeps when it moves, and what a client
 * sees that may be served read-only. Every line that begins with "= " is compared with what is printed when the same
 * program talks to the real server.
 *
 * <p>Moves ADDRESS…: the servers' client addresses. The program asks for a kill -9 or a start by a line "kill N" or
 * "start N" on standard output, N from 0, and waits for a line on standard input that says that it is done.
 */
public final class Moves {
    public static void main(String[] arguments) throws Exception {
        List<InetSocketAddress> servers = Servers.parse(arguments);
        Servers control = new Servers(servers);
        Move.all(control);
        ReadOnly.all(control);
        System.exit(0);
    }
}

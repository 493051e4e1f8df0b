/** Every check of Curator against the servers named by the first argument. */
public final class Interop {
    public static void main(String[] arguments) {
        Checks checks = new Checks(arguments[0]);
        Nodes.all(checks);
        Locks.all(checks);
        Leaders.all(checks);
        Caches.all(checks);
        Counters.all(checks);
        Queues.all(checks);
        Ensembles.all(checks);
        System.exit(checks.failures() == 0 ? 0 : 1);
    }
}

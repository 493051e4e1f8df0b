// Package locks tests the locks of package recipes/lock with real processes. Programs in
// Go, in Java with Curator's recipes and in Python with Kazoo's wait in the same queues,
// while the test kills servers and clients and stops clients for longer than their
// sessions last.
//
//	ZKGO_LIVE=1 go test ./tests/compat/locks              needs Java, Maven and Python: see tests/compat/interop/run.sh
//	.ci/run locks                                  the same, and a run that is skipped fails
//	go test ./tests/compat/locks -args -acquisitions=100000 -rounds=10 -real -limit=2h
//
// They contend for one mutex on a zkgo ensemble, on a standalone server and, with -real, on
// Apache ZooKeeper. A smaller run covers read-write locks, a semaphore, a lease lock and
// locks in Kazoo's own layout. Plain "go test" tests the judge only.
//
// # Processes
//
// Each thread of a worker (goworker_test.go, workers/Locks.java, workers/locks.py) acquires
// its lock, reads the token, which is the czxid of the lock's znode, and tells the register,
// which is in the test's process, that it enters. The reply has two values. The thread adds
// one to each and writes both back: to a plain register, which accepts every write, and to a fenced
// one, which refuses tokens smaller than the greatest it has seen. It also adds one to a znode, in
// a multi with a check of the lock's znode. Then it tells the register that it leaves, and releases
// the lock.
//
// Go workers come in two kinds. The careful ones ask their Lease before they write. The careless
// ones don't: they show why we have two registers.
//
// # Rules
//
//   - No client enters while an earlier client that excludes it has not left and still has
//     its znode. As a result, a killed holder keeps its lock for as long as its session
//     lasts, and a stopped one loses it when the session expires, but not before.
//   - No Go client enters by a znode that isn't its session's but has the same name: while
//     the client waits, the test replaces its znode with another session's.
//   - The fenced register accepts no write from a client that another has followed, and every write
//     that it accepts adds one: no write is lost. The same goes for the znode: its value must equal
//     its version.
//   - No Lease reports that the lock is held after another client has entered.
//   - A client that is stopped while it holds the lock, and continues after another client
//     was in, writes to the plain register as if nothing had happened, and overwrites the other
//     client's value. The run should show this at least once.
//
// We consider a run void, and fail it, if a promised kill, stop or theft did not happen or
// had no effect, or if fewer locks than promised were acquired, in total or in one
// language.
//
// It imports the client and its recipes in the Go worker; the servers are processes.
package locks

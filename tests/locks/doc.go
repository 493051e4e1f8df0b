// Package locks proves the locks of package recipes/lock with real processes:
// programs in Go, in Java with Curator's recipes and in Python with Kazoo's stand in
// the same lines, while servers and clients are killed and clients are stopped
// for longer than their sessions last.
//
//	ZKGO_LIVE=1 go test ./tests/locks              needs Java, Maven and Python: see tests/interop/run.sh
//	.ci/run locks                                  the same, and a run that is skipped fails
//	go test ./tests/locks -args -acquisitions=100000 -rounds=10 -real -limit=2h
//
// They contend for one mutex on an ensemble of zkgo, on a standalone server and,
// with -real, on Apache ZooKeeper; and in a smaller run for read-write locks, a
// semaphore, a lease lock and locks in Kazoo's own layout. Plain "go test" tests the judge only.
//
// # What a process does
//
// Each thread of a worker (goworker_test.go, workers/Locks.java, workers/locks.py)
// acquires its lock, reads the token, which is the czxid of the lock's znode, and
// tells the register, which is in the test's process, that it is in. The answer
// tells two values. It adds one to each and writes both back: to a plain register,
// which takes every write, and to a fenced one, which refuses tokens smaller than
// the greatest it has seen. It adds one to a znode too, in a multi with a check of
// the lock's znode. Then it tells that it is out, and releases the lock.
//
// Go workers come in two kinds. The careful ones ask their Lease before they write.
// The careless do not: they show what the registers are for.
//
// # What is judged
//
//   - Nobody enters while the znode of one before him who excludes him, and has not
//     told that he is out, is still there. So a holder who was killed keeps his lock for as long as
//     his session lasts, and one who was stopped loses it then and not before.
//   - Nobody of Go's enters by a znode that is not his session's, though it has the name
//     of his: while he waits, his znode is replaced by another session's.
//   - The fenced register takes no write from one whom another has followed, and
//     every write that it takes adds one: no write is lost. The same goes for the
//     znode, whose value has to be its version.
//   - No Lease says that the lock is held when another had already entered.
//   - Whoever is stopped while he holds the lock and goes on after another was in
//     writes to the plain register as if nothing had happened, and destroys what the
//     other has written. That must be seen to happen.
//
// A run is void, and fails, if a promised kill, stop or theft did not happen or had no
// effect, or if fewer locks than promised were acquired, in all or in one language.
//
// It imports the client and its recipes in the Go worker; the servers are processes.
package locks

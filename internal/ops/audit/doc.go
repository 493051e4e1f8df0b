// Package audit writes ZooKeeper's audit log: one line for each change with the user,
// the change, the time and the result, using ZooKeeper's fields in its order.
//
// It imports the standard library, proto, tree, limits, and raftfsm for the applied
// transactions, which a [Recorder] turns into records. A [Log] accepts records without
// waiting for the disk, because the goroutine that applies the transaction log adds them.
// The Log's own goroutine writes them in that order. We never drop records to keep up:
// goroutines that read requests call [Log.Wait] first. We escape input from clients, so
// that it can't end a field or a line early.
package audit

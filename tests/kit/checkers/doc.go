// Package checkers decides whether the clients' observations of an ensemble agree with ZooKeeper's
// guarantees. It reads a history.History, which package workload records, and returns a Verdict:
//
//	v := checkers.Check(rec.History(), checkers.Options{})
//	fmt.Print(v)     // the counts, and every violation with the events around it
//	if !v.OK() { … } // keep the file: checkers.Check(history.Read(file)) says the same again
//
// # Checks, one file each
//
//	facts         one history of each znode explains every reply (facts.go, writes.go)
//	realtime      zxids follow real time, for writes and for reads after a sync
//	registers     linearizability of each register, by search (porcupine)
//	sessions      replies in order, zxids never go back, also on another server
//	ephemerals    exist exactly as long as their sessions
//	sequences     numbers rise under a parent and are never used again
//	locks         no lock has two holders, by the holders' belief and by the servers' replies
//	watches       no event lost, none spurious, each before any reply that shows its change
//	replicas      servers have the same state at equal zxids
//	expiry        no session expired although a server had heard its client
//
// # How
//
// Every reply carries the zxid of the state that it was read from, so we hardly need to
// search: a reply that shows a znode with a czxid, an mzxid and a pzxid at a zxid states
// that the znode existed, that its data did not change, and that its children did not
// change between those and this. We check that all such statements about a path, from all
// clients and servers, and all acknowledged writes are consistent. A lost write, a stale
// read and two diverged servers all show as a pair of statements that contradict each
// other.
//
// A checker is sound: it reports only replies that no correct ensemble could have sent,
// whatever happened to the requests without a reply. We conclude that such a request was
// executed only if a client saw its value, because values are unique.
//
// # For simulations and chaos runs
//
// Record each fault and its time as history.Note; notes are shown around a violation. When
// the clients have ended, the network has healed and all servers follow, record a final
// State of each server (workload.Inspect in one process, otherwise workload.Dump and the
// digests of the admin command hash): the checkers look for acknowledged writes in them,
// and compare the replicas. If a run found no violation, you should check how much it has
// covered: Verdict.Count returns that, and the caller decides below which counts a run is
// void.
//
// It imports tests/kit/history, proto and porcupine, and no package of the server.
package checkers

// Package checkers decides whether what clients saw of an ensemble was what
// ZooKeeper promises. It reads a history.History, which package workload
// records, and gives a Verdict:
//
//	v := checkers.Check(rec.History(), checkers.Options{})
//	fmt.Print(v)     // what was counted, and every violation with what happened around it
//	if !v.OK() { … } // keep the file: checkers.Check(history.Read(file)) says the same again
//
// # What is checked, one file each
//
//	facts         one history of each znode explains every reply (facts.go, writes.go)
//	realtime      zxids follow real time, for writes and for reads behind a sync
//	registers     linearizability of each register, by search (porcupine)
//	sessions      replies in order, zxids never back, also on another server
//	ephemerals    exist exactly as long as their sessions
//	sequences     numbers rise under a parent and are never used again
//	locks         no lock has two holders, by what holders believed and by what they were told
//	watches       no event lost, none spurious, each before any reply that shows its change
//	replicas      servers hold the same at equal zxids
//	expiry        no session ended whose client was heard
//
// # How
//
// Every reply carries the zxid of the state it was made of, so there is hardly
// anything to search for: a reply that shows a znode with a czxid, an mzxid and
// a pzxid at a zxid states that it existed, that its data did not change, and
// that its children did not change between those and this. All such statements
// about a path, of all clients and servers, have to fit together, and so does
// what was acknowledged: a write that got lost, a stale read and two servers
// that went apart are all two statements that contradict each other.
//
// A checker is sound: it reports only what no correct ensemble could have
// answered, whatever became of the requests without a reply. What follows from
// them is concluded only as far as somebody saw it: their values are unique.
//
// # For simulations and chaos runs
//
// Record what was broken and when as history.Note; notes are shown around a
// violation. When the clients have ended, the network is whole and all servers
// follow, record a final State of each server (workload.Inspect in one process,
// workload.Dump and the digests of the admin command hash else): acknowledged
// writes are looked for in them, and the replicas compared. A run that found
// nothing is worth only what it counted: Verdict.Count says that, and who runs
// it decides below what a run is void.
//
// It imports tests/history, proto and porcupine, and nothing of the server.
package checkers

// Package workload runs clients on an ensemble while faults are injected, and records their
// observations: package history's Ops, Events, Sessions and Holds. From these, package checkers
// decides whether every guarantee was kept.
//
//	rec := history.NewRecorder(file)
//	cfg := workload.Config{Seed: seed, Servers: []int{1, 2, 3}, Dial: dial, Recorder: rec}
//	err := workload.Run(ctx, cfg)  // until ctx is done
//	for … { rec.State(workload.Inspect(…)) } // or Dump, through a client
//	verdict := checkers.Check(rec.History(), checkers.Options{})
//
// We implement the protocol ourselves, so that no library hides what arrived on which
// connection in which order. The clients get the time only from package time and reach the
// servers only through Config.Dial, so they work the same in real time over TCP and in a
// testing/synctest bubble over in-memory connections. They set no deadlines on connections;
// Close must end a pending Read and Write.
//
// There are four kinds of client. A mixed client (mixed.go) does everything: it
// reads and writes a few registers, with and without sync and versions, also in
// multis; it creates sequential znodes, ephemerals and containers; it leaves
// one-shot, persistent and recursive watches. It has up to Config.Pipeline
// requests in flight; some mixed clients ask for linearizable reads. A locker (locker.go) acquires
// and releases locks. A reader (reader.go) only reads registers, linearizably. An idler (idler.go)
// has an ephemeral znode and pings. All clients reconnect to any server with the last zxid they
// saw, set their watches again and begin a new session after theirs has expired. Mixed clients and
// lockers sometimes drop their connection, close their session, or leave it to expire.
//
// Every decision of a client comes from Config.Seed. The servers' replies and
// their timing do not, so two runs with one seed are similar but not identical.
//
// Run returns when ctx is done. It also records the requests that have no reply by then.
package workload

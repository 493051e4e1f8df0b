// Package workload is what clients do to an ensemble while it is being
// tormented, and the record of it: package history's Ops, Events, Sessions and
// Holds, from which package checkers concludes whether every promise was kept.
//
//	rec := history.NewRecorder(file)
//	cfg := workload.Config{Seed: seed, Servers: []int{1, 2, 3}, Dial: dial, Recorder: rec}
//	err := workload.Run(ctx, cfg)  // until ctx is done
//	for … { rec.State(workload.Inspect(…)) } // or Dump, through a client
//	verdict := checkers.Check(rec.History(), checkers.Options{})
//
// The clients speak the protocol themselves, so that nothing hides what came
// back on which connection in which order. They know the time from package time
// and the servers from Config.Dial only: in real time over TCP and in a bubble
// of testing/synctest over connections in memory they run alike. They set no
// deadlines on connections; a Close has to end a Read and a Write.
//
// There are four kinds of client. A mixed one (mixed.go) does everything: it
// reads and writes a few registers, with and without sync and versions, in
// multis too; it makes sequential znodes, ephemerals and containers; it leaves
// one-shot, persistent and recursive watches. Up to Config.Pipeline of its
// requests are in flight; some ask for linearizable reads. A locker (locker.go)
// takes and releases locks. A reader (reader.go) only reads registers, linearizably. An
// idler (idler.go) has an ephemeral znode and pings.
// All reconnect to any server with the last zxid they saw, set their watches again
// and begin a new session when theirs has expired. The first two drop their
// connection now and then, close their session, or leave it to expire.
//
// Everything a client decides comes from Config.Seed. What the servers answer
// and when does not, so two runs with one seed are alike and not the same.
//
// Run returns when ctx is done. A request that has no reply by then is recorded
// as one without.
package workload

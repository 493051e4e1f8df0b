// Package sim runs whole ensembles in one process and in fake time, and breaks
// them.
//
// Everything that a server consists of is the real thing: server.Start with its
// connections, the replicated state, hashicorp/raft, raft-wal and bbolt with our
// file formats. Only what is around it is not:
//
//   - Time is that of a bubble of testing/synctest: minutes take seconds.
//   - The network, between the servers and to the clients, is quorum.Memory: links
//     are cut, also in one direction, delayed and made to stall, connections are
//     reset and overtake one another. Messages of Raft come twice (wire.Replays).
//   - The disks are in memory (volume, drive) and know what would be left without
//     power: of unsynced pages any, also torn between sectors, of directory
//     entries the first few. The power may go before and after every write. bbolt
//     maps a real file; what a commit has changed there is brought to the disk in
//     bbolt's own order, the pages, an fsync, the meta page, an fsync (databases).
//   - A goroutine cannot be killed. A process that dies is cut off from network,
//     clients and disk at one stroke and closed in the void (process).
//   - Wall clocks are wrong, by seconds or a year. The clock that sessions live by
//     is monotonic in a real process, so it is here.
//
// A seed fixes the layout, the load and the faults; the order of goroutines it
// does not fix. So a failure leaves its trace and its history behind, and is
// looked for again by running its seed many times:
//
//	go test ./tests/sim -run TestSeeds -sim.seed=17 -sim.seeds=1 -sim.repeat=20
//
// -sim.live shows the trace while it is made. A run with too few operations or
// elections, or in which a promised fault was not seen, is void: it is counted,
// and a quarter of such runs fails the test.
//
// Not simulated: a process that stands still with all its timers (the pause here
// holds its links and its disk), and latency of other writes than those of log and
// vote, which are made under locks that nobody could wait for in fake time.
package sim

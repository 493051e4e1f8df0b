// Package sim runs whole ensembles in one process and in fake time, and injects
// faults.
//
// The server is the real thing: server.Start with its connections, the replicated
// state, hashicorp/raft and both kinds of log. Only its environment is simulated:
//
//   - Time is fake (testing/synctest): minutes pass in seconds.
//   - The network between the servers and to the clients is quorum.Memory: links are
//     cut, also in one direction, delayed and stalled; connections are reset and
//     overtake one another. Raft messages arrive twice (wire.Replays).
//   - The disks are in memory (volume, drive) and know which writes would survive a power cut: any
//     subset of the unsynced pages, also torn between sectors, and a prefix of the unsynced
//     directory entries. A power cut may happen before and after every write. bbolt maps a real
//     file; the changes of a commit are copied to the disk in bbolt's own order: the pages, an
//     fsync, the meta page, an fsync (databases).
//   - A goroutine cannot be killed. A process that dies is cut off from network,
//     clients and disk at once, and is then closed where its effects reach nothing
//     (process).
//   - Wall clocks are wrong, by seconds or by a year. The clock that sessions use is
//     monotonic in a real process, so it is monotonic here.
//
// A seed fixes the layout, the load and the faults, but not the order of
// goroutines. So a failed run keeps its trace and its history; to reproduce the
// failure, run its seed many times:
//
//	go test ./tests/safety/sim -run TestSeeds -sim.seed=17 -sim.seeds=1 -sim.repeat=20
//
// -sim.live prints the trace while it is written. A run with too few operations
// or elections, or in which a promised fault was not seen, is void: it is
// counted, and the test fails if more than a quarter of the runs are void.
//
// Not simulated: a process that is stopped with all its timers (the pause here stops its links and
// its disk), and the latency of writes except to log and vote. These other writes happen under
// locks, and no goroutine can wait for a lock in fake time.
package sim

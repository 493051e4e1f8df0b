// Package history holds what clients of an ensemble did and were told: the raw
// material of every checker.
//
// Clients append to a Recorder while they run. It keeps everything in memory
// and, if asked to, streams it to a file of one JSON object a line, which Read
// turns into the same History again: a run that broke a promise is kept and can
// be checked once more without being repeated.
//
// A History is about observations only. Whoever records notes what was sent
// when, and what came back when and in which order; what that means is for the
// checkers. Three rules make it usable:
//
//   - All times are of one clock, nanoseconds since the Recorder was made (Time).
//     Call is taken before the first byte is handed to the connection, Return
//     after the last has come out of it.
//   - A request without a reply has Seq 0: nobody knows whether it was executed.
//     One that was never handed to a connection is not recorded.
//   - Every value that is written is unique in the run. Who reads it knows which
//     request wrote it.
//
// It imports proto and the standard library.
package history

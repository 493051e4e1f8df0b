// Package history records the requests of an ensemble's clients, and the replies: the input of
// every checker.
//
// Clients append to a Recorder while they run. It keeps everything in memory and, on
// request, also writes it to a file with one JSON object per line, which Read turns into
// the same History: we keep a run that broke a guarantee and can check it again without
// repeating it.
//
// A History is only about observations. A client records each message that it sends or receives, in
// order and with the time; the checkers interpret them. Three rules make it usable:
//
//   - All times are from one clock, in nanoseconds since the Recorder was created (Time).
//     We read the clock for Call before the first byte is written to the connection, and for Return
//     after the last byte has been read.
//   - A request without a reply has Seq 0: it may or may not have been executed. A request
//     that was never written to a connection is not recorded.
//   - Every value that is written is unique in the run, so a read value identifies the
//     request that wrote it.
//
// It imports proto and the standard library.
package history

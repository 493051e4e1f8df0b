// Package snapio writes and reads the stream of a snapshot, whatever it holds.
//
// Writer and Reader split it into chunks with checksums. Pace slows the writer down while
// there is other work.
//
// Invariants:
//   - Reader returns only data that a Writer has written, in that order. Damage and a missing
//     end are errors.
//   - Pace changes when data is written, never what is written, and rests no longer than
//     paceMost.
//
// May import: the standard library.
package snapio

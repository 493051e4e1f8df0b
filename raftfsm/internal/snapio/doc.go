// Package snapio writes and reads the stream of a snapshot, independent of its content.
//
// Writer and Reader split it into chunks with checksums. Pace slows the writer down while
// there is other work.
//
// Invariants:
//   - Reader returns only data that a Writer has written, in that order. Damage and a missing
//     end are errors.
//   - Pace delays writes but never changes their content, and rests no longer than
//     paceMost.
//
// May import: the standard library.
package snapio

// Package buffer has pools of byte slices for the input and output of connections.
//
// It imports the standard library only.
//
// Invariants:
//   - A buffer has one holder, which gives it back once.
//   - A shared buffer has many holders and is never changed or given back.
package buffer

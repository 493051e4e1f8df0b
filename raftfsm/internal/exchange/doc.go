// Package exchange carries one question and its answer over a stream between two servers.
//
// A message is a length of four bytes and JSON. A server that needs longer for its answer
// than Timeout sends empty messages before it.
//
// Invariants:
//   - Neither side waits longer than Timeout for a message from the other.
//   - A message has at most maxMessage bytes. The sender has proved nothing yet, so the
//     caller checks everything else in it.
//
// May import: internal/quorum, the standard library.
package exchange

// Package httpport serves HTTP to operators on a port that any client may reach.
//
// It imports the standard library and certs, which explains TLS errors. It doesn't depend on
// the handlers.
//
// Invariants:
//   - We keep at most [MaxConns] connections open. If there are more, we close the one that
//     has kept the server waiting for longest, but never an authorized transfer ([Keep]).
//   - [Port.Close] doesn't wait for clients, and no goroutine accepts connections after it
//     returns.
package httpport

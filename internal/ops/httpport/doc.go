// Package httpport serves HTTP to operators on a port that any client may reach.
//
// It imports the standard library and keystore, which explains TLS errors. It doesn't
// know what the port serves.
//
// Invariants:
//   - At most [MaxConns] connections are open. The one that has kept the server waiting
//     for longest makes room, but never an authorized transfer ([Keep]).
//   - [Port.Close] waits for no client, and leaves no goroutine that accepts.
package httpport

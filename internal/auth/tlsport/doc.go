// Package tlsport speaks TLS with clients: on a port that requires it, and on one where a
// client may also continue in plaintext.
//
// It imports the standard library, proto for identities, and certs, which checks hosts
// and explains errors. It doesn't read the client protocol.
//
// Invariants:
//   - A client that doesn't read TLS messages can't delay [Conn.Close] for long.
//   - We never wait for a client's first byte or handshake on the goroutine that accepts.
package tlsport

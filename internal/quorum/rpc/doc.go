// Package rpc reads and writes Raft's messages as raft.NetworkTransport encodes them, and
// makes the checks that need only the message itself.
//
// Raft trusts its input: a message that no correct server sends may crash the process,
// destroy the ensemble, or replace committed entries. So this package bounds everything
// that it decodes, and Check refuses messages that no correct server sends. Package
// transport adds the checks that need this server's state.
//
// Invariants:
//   - A length is compared with its limit before any memory is allocated for it:
//     otherwise a few bytes from a stranger would exhaust the memory.
//   - A message that Check accepts doesn't make Raft's own decoders panic.
//
// It imports hashicorp/raft and the standard library.
package rpc

// Package snapshots serves the AdminServer's commands snapshot and restore: it writes the
// state of a server as a file of ZooKeeper, and replaces it with such a file.
//
// It imports the standard library, admin for the interface of the commands, certs and
// schemes for the identity of the caller, proto and tree for permissions, raftfsm and
// session for the state, and stats. It depends on neither connections nor formats: the
// program provides the format.
//
// Invariants:
//   - Only a client with all permissions on the root gets the state or replaces it.
//   - A client that reads slowly pins no snapshot of the tree.
package snapshots

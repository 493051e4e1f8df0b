// Package membership defines the list of servers that an ensemble consists of, and decides
// how it may change.
//
// A List is replicated state, and /zookeeper/config shows it. A reconfig replaces it (Next),
// and the configuration files may change it. Raft's configuration follows the list in steps
// of one server (Plan).
//
// Invariants:
//   - All decisions are pure functions of their arguments, because every server must make
//     the same decision. We never resolve a host name.
//   - Every server reads the same List from a text that another server has written.
//   - Servers can start with every List that a reconfig leads to (Conflict).
//   - If the present voters and the target's voters have live majorities, so has every
//     configuration in between (Plan).
//
// May import: proto, tree, hashicorp/raft for its types, the standard library.
package membership

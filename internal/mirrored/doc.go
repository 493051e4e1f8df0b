// Package mirrored is the vocabulary of a mirror: how far servers are that follow another
// ensemble, what its leader has said, and what their clients want from it. The state machine,
// the server and the connection to the other ensemble share it.
//
// May import: of this module proto. It has no goroutines and no shared state.
package mirrored

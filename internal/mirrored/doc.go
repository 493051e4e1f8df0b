// Package mirrored defines the types of a mirror: the progress of servers that follow another
// ensemble, the messages of its leader, and the requests of their clients. The state machine,
// the server and the connection to the other ensemble share these types.
//
// May import: of this module proto. It has no goroutines and no shared state.
package mirrored

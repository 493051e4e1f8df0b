// Package client will be the Go client: pipelined, with contexts, for zkgo and
// Apache ZooKeeper alike. Nothing of it is written yet.
//
// It may import proto and the standard library, and nothing of the server, so
// that it works against any ZooKeeper.
package client

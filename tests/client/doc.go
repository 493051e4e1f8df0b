// Package client runs one suite of the Go client against zkgo and against Apache
// ZooKeeper: what the client promises must not depend on whose server it is.
//
//	go test ./tests/client              zkgo
//	ZKGO_LIVE=1 go test ./tests/client  Apache ZooKeeper as well
//
// ZKGO_CLIENT_ADDR=host:port adds any other server, for instance an older
// ZooKeeper; it needs extended types, and what it lacks by its age is skipped.
//
// Faults are made in the client's own connections, so they are the same for both.
package client

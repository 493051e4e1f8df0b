// Package client runs one suite of the Go client against zkgo and against Apache
// ZooKeeper: what the client promises must not depend on whose server it is.
//
//	go test ./tests/client              zkgo
//	ZKGO_LIVE=1 go test ./tests/client  Apache ZooKeeper as well
//
// Faults are made in the client's own connections, so they are the same for both.
package client

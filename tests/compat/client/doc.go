// Package client runs one test suite of the Go client against zkgo and against Apache
// ZooKeeper: the client's guarantees should not depend on the server.
//
//	go test ./tests/compat/client              zkgo
//	ZKGO_LIVE=1 go test ./tests/compat/client  Apache ZooKeeper as well
//
// ZKGO_CLIENT_ADDR=host:port adds any other server, e.g. an older ZooKeeper. That server
// needs extended types; tests of features that it is too old for are skipped.
//
// The tests inject faults into the client's own connections, so the faults are the same for
// both servers.
package client

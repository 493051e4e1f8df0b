// Package startup measures how long it takes until a test has a ZooKeeper that
// answers: zktest, Curator's TestingServer and TestingCluster in a running JVM,
// and the Java server as a process of its own. Nothing is judged here; the
// figures stand in docs/testing.md.
//
//	ZKGO_LIVE=1 go test -v -count=1 ./tests/startup
//
// It takes Java, Maven, and a machine that does nothing else.
package startup

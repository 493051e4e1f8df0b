// Package startup measures how long a test waits for a ZooKeeper server that answers:
// zktest, Curator's TestingServer and TestingCluster in a running JVM, and the Java server
// in a separate process. We don't judge the results here. docs/guide/testing.md has the
// figures.
//
//	ZKGO_LIVE=1 go test -v -count=1 ./tests/perf/startup
//
// It needs Java, Maven, and an otherwise idle machine.
package startup

// Package testserver runs zkgo testserver as its users do: the examples of
// docs/testserver.md, in pytest with Kazoo and in JUnit with Curator, as they
// stand there, and the test suites of Go modules of others that need a ZooKeeper.
//
//	ZKGO_REQUIRE=1 go test ./tests/testserver      needs Java, Maven, Python and the package registries
//	.ci/run testserver                             the same
//
// Plain "go test" only checks that the page shows what is run. What is tested is
// the binary.
package testserver

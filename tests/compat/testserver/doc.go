// Package testserver runs zkgo testserver as its users do. It runs the examples of
// docs/guide/testserver.md, in pytest with Kazoo and in JUnit with Curator, exactly as printed
// there, and the test suites of third-party Go modules that need a ZooKeeper.
//
//	ZKGO_REQUIRE=1 go test ./tests/compat/testserver      needs Java, Maven, Python and the package registries
//	.ci/run testserver                             the same
//
// Plain "go test" only checks that the page shows the files that are run. The tests run the
// zkgo binary.
package testserver

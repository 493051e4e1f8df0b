// Package peers tests that recipes other than locks work across Go, Java with Curator and
// Python with Kazoo: Go and Kazoo members share a set, queue items go from Java to Go and
// back, and both find services. Locks have a separate suite, tests/compat/locks.
//
//	ZKGO_LIVE=1 go test ./tests/compat/peers   needs Java, Maven and Python: see tests/compat/interop/run.sh
//	.ci/run peers                       the same, and a run that is skipped fails
//
// A worker in another language is a process that reads commands on its standard input and
// answers on its standard output, line by line; it ends when its input ends. The Go part
// and the server are in the test's process.
package peers

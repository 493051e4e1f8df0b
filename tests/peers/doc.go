// Package peers proves that recipes other than locks mean the same to Go, to Java
// with Curator and to Python with Kazoo: a set is shared by Go and Kazoo members,
// items of queues go from Java to Go and back, services are found by both. Locks
// have a suite of their own, tests/locks, which finds its tools here.
//
//	ZKGO_LIVE=1 go test ./tests/peers   needs Java, Maven and Python: see tests/interop/run.sh
//	.ci/run peers                       the same, and a run that is skipped fails
//
// A worker in another language is a process that is told what to do on its standard
// input and answers on its standard output, line by line; it ends when its input does.
// The Go part is in the test's process, and so is the server.
//
// What is not a test here imports nothing of this module.
package peers

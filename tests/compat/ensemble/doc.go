// Package ensemble tests ensembles of real processes. It tests how they form, grow,
// shrink, change addresses and upgrade while clients are connected, and compares the replies to
// reconfig with the real ZooKeeper's.
//
//	go test ./tests/compat/ensemble                     zkgo, and reconfig against recorded replies
//	ZKGO_LIVE=1 go test ./tests/compat/ensemble         the real ZooKeeper gives the same replies
//	go test ./tests/compat/ensemble -run Real -record   record the replies again
//
// The scripts in testdata use the language of tests/compat/conformance. In braces, q1, e1 and c1
// are the quorum, election and client port of server 1.
package ensemble

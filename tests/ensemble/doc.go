// Package ensemble tests ensembles of real processes: how they form, grow,
// shrink, are re-addressed and upgraded while clients are connected, and what
// reconfig answers, compared with the real ZooKeeper.
//
//	go test ./tests/ensemble                     zkgo, and reconfig against recorded answers
//	ZKGO_LIVE=1 go test ./tests/ensemble         the real ZooKeeper gives the same answers
//	go test ./tests/ensemble -run Real -record   record the answers anew
//
// The scripts of testdata are in the language of tests/conformance; q1, e1 and
// c1 in braces are the quorum, election and client port of server 1.
package ensemble

// Package zktest runs the real server inside a test: in memory, in
// milliseconds, gone when the test ends.
//
//	zs := zktest.Run(t)
//	c := zs.Client(t)
//
// Any other client finds the server by [Server.Addrs] or [Server.Dial].
//
// [RunCluster] does the same with a Raft ensemble whose servers talk over a
// network in memory. What a test needs beyond a client's view is a method of
// [Server]: to move the clock (Advance), to look inside without a client (Get,
// Dump, Sessions, WaitForWatch …), to fill the tree (Seed, SeedYAML …), to read
// what was said (Record), to make things go wrong (ExpireSession, FailNext,
// FillDisk, Kill …), and to start over (Snapshot, Reset).
//
// Nothing of the server is replaced: clients speak to package server, and what
// happens to them is done by an Interceptor at its doors, by its clock, its disk
// and its network, and by transactions in its log. Reset of a server alone is the
// exception: it exchanges the tree.
//
// Methods that get an error fail the test with Fatal, so they are for the
// test's goroutine. Those that wait give up after 30 seconds.
//
// It imports server, raftfsm with disk and peer, tree, session, watch and proto,
// a reader of YAML for SeedYAML, and client for the two methods that hand one out;
// nothing else in it knows that client.
package zktest

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
// Dump, Sessions, WaitForWatch …), to make things go wrong (ExpireSession,
// DropConnection, FailNext …), and to start over (Snapshot, Reset).
//
// Nothing of the server is replaced: clients speak to package server, and what
// happens to them is done by an Interceptor at its doors, by its clock, and by
// transactions in its log.
//
// Methods that get an error fail the test with Fatal, so they are for the
// test's goroutine. Those that wait give up after 30 seconds.
//
// It imports server, raftfsm, raftfsm/peer, watch and proto, and client for the
// two methods that hand one out; nothing else in it knows that client.
package zktest

// Package zktest runs the real server inside a test: in memory, in milliseconds, and
// only until the test ends.
//
//	zs := zktest.Run(t)
//	c := zs.Client(t)
//
// Any other client can connect through [Server.Addrs] or [Server.Dial].
//
// [RunCluster] does the same with a Raft ensemble. Its servers are connected by an in-memory
// network. The methods of [Server] let a test do things that a client can't: move the clock
// (Advance), inspect the server without a client (Get, Dump, Sessions, WaitForWatch …), fill
// the tree (Seed, SeedYAML …), record the conversation (Record), inject faults
// (ExpireSession, FailNext, FillDisk, Kill …), and start over (Snapshot, Reset).
//
// We don't replace any part of the server. Clients talk to package server, and we act on
// them through an Interceptor, through the server's clock, disk and network, and by
// transactions in its log. The only exception is Reset of a standalone server, which
// replaces the tree.
//
// If a method gets an error, it fails the test with Fatal, so you should call it from the
// test's goroutine. Methods that wait give up after 30 seconds.
//
// It imports server, internal/ops/status, raftfsm, tree, session, watch, proto,
// internal/quorum, internal/vfs, internal/smallfile, a YAML reader for SeedYAML, and
// client for the two methods that return one; the rest of the package doesn't depend
// on that client.
package zktest

// Package compare measures zkgo beside Apache ZooKeeper: the same load of "zkgo
// bench" on servers of one machine, one program after the other in turns, several
// times, so that whatever else the machine does falls on all of them alike. What
// counts is the ratio of the medians.
//
//	make bench-compare
//
// Programs run with their default settings, fsync on; zkgo once with each of its log
// stores. Servers, and the load generator, share the machine's cores.
//
// etcd stands beside them for what it has the like of; etcd/ is the program that asks
// it, a module of its own because it needs etcd's client. A machine that has not got
// etcd, or that client, measures without.
//
// floor/ has C programs that do the least a server can do, and the least that finding
// znodes in memory takes, to tell what the machine and the load leave to any.
//
// Cells of the matrix are in plan.go: what is measured, and where zkgo must stand.
// run/ is the command, which writes tables and pictures. The test of this package runs
// the whole matrix for moments with ZKGO_REQUIRE=1, to see that it works, and judges
// no time.
package compare

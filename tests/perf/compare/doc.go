// Package compare measures zkgo beside Apache ZooKeeper. We run the same loads of "zkgo
// bench" on servers on one machine, with the programs taking turns, several times, so that
// other load on the machine affects all programs alike. The result is the ratio of the
// medians.
//
//	make bench-compare
//
// Programs run with their default settings, with fsync on; zkgo runs once with each of its
// log stores. The servers and the load generator share the machine's cores.
//
// We measure etcd too, for the operations that it has an equivalent of. etcd/ is the
// program that loads it, a separate module because it needs etcd's client. On a machine
// without etcd or its client, the run leaves etcd out.
//
// floor/ has C programs that do the minimum work of a server, and the minimum work of
// looking up znodes in memory. They show how fast any server could be on this machine with
// this load.
//
// plan.go has the cells of the matrix: the measurements, and the targets for zkgo. run/ is the
// command, which writes tables and plots. The test of this package runs the whole matrix briefly
// with ZKGO_REQUIRE=1, to check that it works, and judges no times.
package compare

// Package bench is a load generator for any server that speaks the ZooKeeper
// protocol. It asks on the wire itself, so that what it measures is the server and
// not a client's library: a connection is one goroutine that keeps a window of
// requests in flight, writes what has gathered in one go, and notes when each
// reply came.
//
//	result, err := bench.Run(ctx, bench.Config{Work: "set", Servers: []string{"127.0.0.1:2181"}, Conns: 64, Window: 64})
//
// The loop is closed: a new request is sent when a reply has come. With a large
// window a request's latency is therefore mostly the time it waits behind others,
// and throughput says more; with a window of 1 it is the server's.
//
// It may import proto only.
//
// Invariants:
//   - Only replies that come between the end of the warm-up and the end of the
//     duration count, and the servers' processor time is taken at the same moments.
//   - Everything happens below one znode of the run's own, which is removed
//     afterwards unless it shall stay.
//   - A reply that carries an error, and a request without a reply, are counted as
//     errors by name and never as operations.
package bench

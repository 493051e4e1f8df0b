// Package bench is a load generator for any server that speaks the ZooKeeper protocol. We
// write requests to the wire ourselves, so that we measure the server and not a client
// library. Each connection has one goroutine, which keeps a window of requests in flight,
// writes pending requests in one call, and records when each reply arrives.
//
//	result, err := bench.Run(ctx, bench.Config{Work: "set", Servers: []string{"127.0.0.1:2181"}, Conns: 64, Window: 64})
//
// The load is a closed loop: a connection sends a new request when a reply has arrived.
// With a large window, a request spends most of its latency in a queue, so you should look
// at the throughput. With a window of 1, the latency is the server's.
//
// It may import proto only.
//
// Invariants:
//   - We count only replies that arrive between the end of the warm-up and the end of the
//     duration. We read the servers' CPU time at the same two times.
//   - Everything happens below the run's own znode. Run removes it afterwards unless
//     Config.Keep is set.
//   - We count a reply with an error and a request without a reply as errors, by name, and
//     never as operations.
package bench

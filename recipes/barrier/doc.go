// Package barrier lets processes wait for one another: [Barrier] is a gate that
// somebody opens, [DoubleBarrier] lets a number of processes begin and end a piece
// of work together, [CountDownLatch] opens when something has been done a number
// of times.
//
// # Rules
//
// It imports recipes and client. The znodes of Barrier and DoubleBarrier are those of
// Curator's DistributedBarrier and DistributedDoubleBarrier. Waiters leave no watch
// behind, and whoever gives up leaves no znode that others would wait for.
package barrier

// Package barrier lets processes wait for one another. A [Barrier] is a gate that any
// process closes and opens. A [DoubleBarrier] lets a number of processes begin and end
// a piece of work together, once or in rounds. A [CountDownLatch] opens when something
// has been done a number of times.
//
// # Rules
//
// It imports recipes and client. The znodes of Barrier and DoubleBarrier are those of
// Curator's DistributedBarrier and DistributedDoubleBarrier. Waiters leave no watch
// behind, and a process that gives up leaves no znode that others would wait for.
package barrier

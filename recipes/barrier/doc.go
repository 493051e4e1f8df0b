// Package barrier lets processes wait for one another. A [Barrier] is a gate that any
// process can close and open. A [DoubleBarrier] lets a fixed number of processes
// begin and end a piece of work together, once or in rounds. A [CountDownLatch] opens
// when it has been counted down a given number of times.
//
// # Rules
//
// The package imports recipes and client. Barrier and DoubleBarrier use the znodes of
// Curator's DistributedBarrier and DistributedDoubleBarrier. Waiters remove their watches,
// and a process that gives up removes its znode, so that the others don't wait for it.
package barrier

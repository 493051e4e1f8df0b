// Package load is the common part of the programs that tests/perf/lockbench measures locks
// with: clients, each with its own connection, acquire and release a lock, and the process
// records the times. We put all clients into one process, so that there is one clock.
//
// It imports the standard library only, because a program in another module uses it.
package load

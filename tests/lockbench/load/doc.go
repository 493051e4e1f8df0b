// Package load is what every program does that tests/lockbench measures locks
// with: clients, each with a connection of its own, acquire and release, and the
// process notes when. All clients are in one process, so there is one clock.
//
// It imports the standard library only, since a program of another module uses
// it.
package load

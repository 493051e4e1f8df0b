// Package recipes says what the recipes in its subfolders ask of a ZooKeeper
// client: [Conn] and [Session], a dozen plain operations. [On] makes them from
// our client, package recipes/gozk from a *zk.Conn of go-zookeeper, so that
// whoever uses that one can use the recipes without changing clients.
//
//	conn := recipes.On(c) // c is a *client.Client
//	mutex := lock.NewMutex(conn, "/locks/stock")
//
// The recipes themselves:
//
//	recipes/barrier   barrier, double barrier, count-down latch
//	recipes/cache     node, children and tree cache
//	recipes/config    typed configuration that is followed, the last good value kept
//	recipes/counter   atomic numbers, numbers in blocks, shared count and value
//	recipes/discovery services that register, and those who look for them
//	recipes/election  leader election: campaign, latch, observe
//	recipes/lock      mutex, read-write lock, semaphore, multi-lock, quorum lock, lease lock
//	recipes/naming    unique numbers and names
//	recipes/node      znodes that are kept in existence, groups and their members
//	recipes/partition sets of items that are shared among the members of a party
//	recipes/queue     queues with claims: first in first out, priority, delay, by id, simple, sharded
//
// # Rules
//
// It imports client and nothing else of this module: recipes see a client, never
// the wire and never the server. Everything is written against these invariants
// of a [Session]: its operations happen in that one session or not at all, in the
// order in which they were asked for; reads are repeated until they are answered;
// a write is tried once, and if it may or may not have been done the error says
// so ([client.ErrUnknownOutcome]) and the recipe has to find out.
package recipes

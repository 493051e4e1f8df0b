// Package recipes defines what the recipes in its subfolders need from a ZooKeeper
// client: [Conn] and [Session], about a dozen plain operations. [On] implements them
// with zkgo's client, and package recipes/gozk with a *zk.Conn of go-zookeeper, so
// users of go-zookeeper can use the recipes without changing clients.
//
//	conn := recipes.On(c) // c is a *client.Client
//	mutex := lock.NewMutex(conn, "/locks/stock")
//
// The recipes themselves:
//
//	recipes/barrier   barrier, double barrier, count-down latch
//	recipes/cache     node, children and tree cache
//	recipes/config    typed configuration that follows changes and keeps the last good value
//	recipes/counter   atomic numbers, numbers in blocks, shared count and value
//	recipes/discovery services that register, and clients that look for them
//	recipes/election  leader election: campaign, latch, observe
//	recipes/lock      mutex, read-write lock, semaphore, multi-lock, quorum lock, lease lock
//	recipes/naming    unique numbers and names
//	recipes/node      znodes that are kept in existence, groups and their members
//	recipes/partition sets of items that are shared among the members of a party
//	recipes/queue     queues with claims: first in first out, priority, delay, by id, simple, sharded
//
// # Rules
//
// The package imports client and no other package of this module: recipes see a
// client, never the wire protocol or the server. All recipes rely on these invariants
// of a [Session]: its operations happen in that one session or not at all, in the
// order of the calls; reads are retried until they are answered; a write is tried
// once, and if it may or may not have been done, the error says so
// ([client.ErrUnknownOutcome]) and the recipe must find out.
package recipes

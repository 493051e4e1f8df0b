// Package recipes defines the interface between the recipes in its subfolders and a
// ZooKeeper client: [Conn] and [Session], about a dozen plain operations. [On] implements
// them with zkgo's client, and package recipes/gozk with a *zk.Conn of go-zookeeper, so
// that users of go-zookeeper don't have to change clients.
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
// The package imports client and no other package of this module: recipes see a client,
// never the wire protocol or the server. We rely on these invariants of a [Session] in all
// recipes. Operations run in that one session or not at all, in the order of the calls.
// Reads are retried until the server replies. A write is tried once. If it may or may not
// have run, the error is [client.ErrUnknownOutcome], and the recipe must find out.
package recipes

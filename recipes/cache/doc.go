// Package cache keeps an up-to-date copy of znodes in memory: of one znode, of a
// znode and its children, or of a whole tree.
//
//	c := cache.NewTree(recipes.On(c), "/app")
//	defer c.Close()
//	if err := c.Wait(ctx); err != nil { // until it is complete
//		return err
//	}
//	for n := range c.Children("/app/workers") {
//		fmt.Println(n.Name(), string(n.Data))
//	}
//	for change, err := range c.Changes(ctx) {
//		…
//	}
//
// # Guarantees
//
// A cache follows one server, so it may lag behind the ensemble, as every ZooKeeper read
// may, but it never goes back in time. It may skip a state that is soon replaced, but it
// never misses the last one, even if a connection breaks, a session ends, or a znode is
// deleted and created again. Without a connection it shows the last known state; Complete
// is false if a session has ended and not everything has been read again.
//
// Parents appear before their children and disappear after them. We can't offer a snapshot
// of several znodes at one zxid, because ZooKeeper doesn't.
//
// # Rules
//
// The package imports recipes and client. We use only one-shot watches, two for each znode,
// or a single watch with WithRecursiveWatch. The number of requests in flight is bounded.
// We remove a znode from the cache only if a read has shown that it is gone.
package cache

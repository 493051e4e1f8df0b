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
// A cache follows one server, so it may lag behind the ensemble, as every ZooKeeper
// read may; it never goes back in time. It may skip states that are soon replaced. It
// never misses a state that lasts, even if a connection breaks, a session ends, or a
// znode is deleted and created again. Without a connection it shows the last known
// state; Complete is false if a session has ended and not everything has been read
// again.
//
// Parents appear before their children and disappear after them. There is no snapshot
// of several znodes at one zxid, because ZooKeeper has none.
//
// # Rules
//
// The package imports recipes and client. It needs only one-shot watches, two for
// each znode; with WithRecursiveWatch it uses a single watch instead. The number of
// requests in flight is bounded. A znode leaves the cache only if a read has shown
// that it is gone.
package cache

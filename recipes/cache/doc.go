// Package cache keeps a copy of znodes in memory and up to date: of one znode, of
// the children of one, or of a whole tree.
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
// # What it promises
//
// It follows what one server tells, so it may be behind the ensemble, as every read
// of ZooKeeper may be; what it shows never goes back in time. It may skip states
// that were replaced soon. It never misses a state that lasts: not by a connection
// that breaks, not by a session that ends, not by a znode that is deleted and
// created again. While there is no connection it shows what it knew last; Complete
// tells when a session has ended and not everything was read again yet.
//
// Parents appear before their children and disappear after them. There is no
// snapshot of several znodes at one zxid, since ZooKeeper has none.
//
// # Rules
//
// It imports recipes and client. It needs nothing but one-shot watches, two for each
// znode; WithRecursiveWatch has it use one for all instead. A bounded number of
// requests is under way at any time. A znode leaves the cache only because a read
// has said that it is gone.
package cache

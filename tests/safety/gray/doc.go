// Package gray measures what clients notice when the network between the servers
// of an ensemble misbehaves without going down: established connections are
// forgotten while new ones work, large packets are lost but small ones are not, a
// link is slow, a server is cut off without a reset. zkgo and Apache ZooKeeper
// run the same scenarios with the same zoo.cfg and the same clients.
//
// Each server and the clients run in their own network namespaces (tests/kit/netns), and we
// drop packets between them. The package needs Linux and root.
//
// On every server one client writes, one opens sessions and one reads; they never move to
// another server, so that we measure each server. A Row has their measurements and the limits that
// zkgo must meet. The command run writes docs/design/reliability-gray.md; the tests of this package
// run the short scenarios.
package gray

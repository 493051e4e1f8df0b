// Package gray measures what clients notice when the network between the
// servers of an ensemble misbehaves without breaking: established connections
// are forgotten while new ones work, large packets are lost and small ones are
// not, a link is slow, a server is cut off without a reset. zkgo and Apache
// ZooKeeper run the same scenarios with the same zoo.cfg and the same clients.
//
// Every server and the clients are in network namespaces of their own
// (tests/netns), and packets are dropped between them. The package needs Linux
// and root.
//
// At every server one client writes, one opens sessions and one reads; they
// never move to another server, so that each server is measured. A Row has what
// they noticed and what zkgo has to keep to. run/ is the command that writes
// docs/reliability-gray.md; the tests of this package run the short scenarios.
package gray

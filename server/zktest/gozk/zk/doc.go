// Package zk is a drop-in replacement for github.com/go-zookeeper/zk in tests that start their own
// servers: it has all names of that package and, in addition, StartTestCluster of its test
// harness. A suite that calls it compiles after changing one import, and needs no Java.
//
//	import zk "github.com/zkgo/zkgo/server/zktest/gozk/zk"
//
// The servers are zkgo, in this process, with TCP ports and data on disk. The connections
// are made by the client itself, so the code under test doesn't change its import.
package zk

// Package overview asks the servers of an ensemble how they are: by the four-letter
// words srvr and mntr, or by their AdminServers. It works with every ZooKeeper
// since 3.4; a server that allows srvr only, which is ZooKeeper's default, tells
// less.
//
// A [Watcher] asks again and again and works out what changes in a second. What is
// not known is nil, never 0.
//
// It imports the standard library only.
package overview

// Package overview queries the state of an ensemble's servers, by the four-letter
// words srvr and mntr or through their AdminServers. It works with ZooKeeper 3.4 and
// later. A server that only allows srvr, which is ZooKeeper's default, reports less.
//
// A [Watcher] queries repeatedly and computes rates per second. Unknown values are
// nil, never 0.
//
// May import: of this module internal/words.
package overview

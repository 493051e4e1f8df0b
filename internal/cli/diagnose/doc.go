// Package diagnose explains why a connection to a server failed: it describes errors, and
// probes the server's port again if an error isn't specific enough. A
// [Trouble] watches a client and reports new causes immediately.
//
// It works with any ZooKeeper: it imports package client and the standard library only.
package diagnose

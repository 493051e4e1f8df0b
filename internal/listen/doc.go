// Package listen checks whether a server can listen on its ports. At startup it waits for
// names and addresses that aren't available yet.
//
// It imports the standard library, and quorum for the interface of the network between
// servers. It depends neither on a configuration nor on a protocol.
package listen

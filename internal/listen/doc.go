// Package listen finds out whether a server can listen on its ports, and waits at its start
// for names and addresses that aren't there yet.
//
// It imports the standard library, and quorum for the interface of the network between
// servers. It knows neither a configuration nor what happens on a connection.
package listen

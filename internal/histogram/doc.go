// Package histogram records durations and sizes on the hot paths of the server, the
// log and the network between servers.
//
// It imports only the standard library. An observation costs a few atomic additions and
// acquires no lock, and only the first one of a Summary allocates. We do all other work when
// a caller reads the Summary. The packages that use it name and expose the numbers.
package histogram

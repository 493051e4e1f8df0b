// Package faultnet carries TCP connections between named ends through proxies
// that can be told to misbehave, each direction of each pair of ends by itself:
// to hold everything back, to be slow, to stall now and then, to break.
//
// A link that is cut behaves as a network that drops every packet does to TCP:
// nothing arrives, nobody is told, and what was sent is delivered when the
// network heals, unless an end has given up by then. The end of a connection is
// held back just the same.
//
// One thing differs from a real network: to connect over a cut link succeeds
// and then nothing comes, where a real connect would hang.
package faultnet

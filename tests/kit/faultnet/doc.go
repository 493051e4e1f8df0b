// Package faultnet carries TCP connections between named ends through proxies
// that can be made to misbehave, separately for each direction of each pair of
// ends: they delay everything, are slow, stall now and then, or break.
//
// A cut link behaves like TCP over a network that drops every packet: nothing arrives, no
// end notices, and sent data is delivered when the network heals, unless an end has given up by
// then. We delay the end of a connection in the same way.
//
// There is one difference from a real network: connecting over a cut link succeeds and then
// nothing arrives, whereas a real connect would hang.
package faultnet

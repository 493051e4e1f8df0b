// Package recipes will hold locks, elections, barriers, queues and caches on top
// of a small interface that a client satisfies. Nothing of it is written yet.
//
// It may import the client's interface, and neither the wire protocol nor the
// server.
package recipes

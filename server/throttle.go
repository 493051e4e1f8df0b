package server

import "time"

// ConnThrottle limits how fast sessions begin, so that a crowd of reconnecting clients
// doesn't keep the server from those it has. It is a token bucket with BLUE: while the
// bucket stays empty, the server rejects a growing part of the clients at random, so
// that it doesn't always admit the same ones. The server closes the connection of a
// rejected client.
type ConnThrottle struct {
	Tokens    int           // capacity of the bucket
	FillTime  time.Duration // how often FillCount tokens are added; at least 1 ms
	FillCount int
	// FreezeTime is how long the probability stays constant; negative: no BLUE.
	FreezeTime                 time.Duration
	DropIncrease, DropDecrease float64 // changes of the probability
	DecreaseRatio              float64 // the probability decreases while at most this part of the bucket is in use
	New, Renewed               int     // tokens for a new session, and for a renewed one
}

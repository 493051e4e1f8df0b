package raftlog

// turn is a lock that may be held across disk writes. Unlike with sync.Mutex, a goroutine
// that waits for a turn is durably blocked in a testing/synctest bubble, so the time of a
// simulated disk can advance.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock acquires the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock releases the turn.
func (t turn) Unlock() { <-t }

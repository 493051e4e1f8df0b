package raftlog

// turn is a lock for what is done while the disk is waited for. Unlike with
// sync.Mutex, a goroutine that waits for its turn counts as idle in a bubble of
// testing/synctest, so that the time of a simulated disk can pass.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock ends it.
func (t turn) Unlock() { <-t }

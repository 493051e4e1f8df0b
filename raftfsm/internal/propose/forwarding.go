package propose

import (
	"fmt"
	"sync"
)

// Stream carries this server's commands to the leader.
type Stream interface {
	// Send sends one encoded run; runs arrive in the order of the calls. It blocks while
	// the leader accepts no more. It doesn't keep the slice.
	Send(run []byte) error
	// Close ends the stream and unblocks Send.
	Close()
}

// Forwarding sends this server's commands to one incarnation of a leader. It is the
// follower's counterpart of the Proposer.
type Forwarding struct {
	To      Stream
	local   *LocalRuns
	backlog *Backlog
	Failed  chan error // the first error
	stop    chan struct{}

	mu     sync.Mutex // held during take
	halted bool
}

// Halt stops the forwarding. After it returns, no run leaves the queue.
func (f *Forwarding) Halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.halted {
		f.halted = true
		close(f.stop)
		f.To.Close()
	}
}

// take removes the next run from the queue and returns it in buf, or returns an empty
// slice if no run is worth sending yet.
func (f *Forwarding) take(buf []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted || !f.local.worth() {
		return buf[:0]
	}
	b, _ := f.local.Take(buf[:0], 0)
	return b
}

// Run sends runs until it is halted or the stream fails.
func (f *Forwarding) Run() {
	defer f.backlog.poke() // this sender may have consumed the next sender's wake-up
	var buf []byte
	for {
		if buf = f.take(buf); len(buf) == 0 {
			select {
			case <-f.backlog.wake:
				continue
			case <-f.stop:
				return
			}
		}
		if err := f.To.Send(buf); err != nil {
			f.Failed <- fmt.Errorf("sending commands to the leader: %w", err)
			return
		}
		if cap(buf) > MaxSpareBytes {
			buf = nil
		}
	}
}

// NewForwarding returns a forwarding of the commands in local. run starts it.
func NewForwarding(to Stream, local *LocalRuns) *Forwarding {
	return &Forwarding{To: to, local: local, backlog: local.backlog, Failed: make(chan error, 1), stop: make(chan struct{})}
}

package raftfsm

import (
	"fmt"
	"sync"
)

// forwarder carries this server's commands to the leader.
type forwarder interface {
	// Send sends one encoded run; runs arrive in the order of the calls. It blocks while
	// the leader accepts no more. It doesn't keep the slice.
	Send(run []byte) error
	// Close ends the stream and unblocks Send.
	Close()
}

// forwarding sends the commands in the intake to one incarnation of a leader. It is the
// follower's counterpart of the proposer.
type forwarding struct {
	to      forwarder
	local   *intake
	backlog *backlog
	failed  chan error // the first error
	stop    chan struct{}

	mu     sync.Mutex // held while a run is taken
	halted bool
}

// halt stops the forwarding. After it returns, no more runs are taken.
func (f *forwarding) halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.halted {
		f.halted = true
		close(f.stop)
		f.to.Close()
	}
}

// take returns the next run in buf, or an empty slice if no run is worth sending yet.
func (f *forwarding) take(buf []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted || !f.local.worth() {
		return buf[:0]
	}
	b, _ := f.local.take(buf[:0], 0)
	return b
}

// run sends runs until it is halted or the stream fails.
func (f *forwarding) run() {
	defer f.backlog.poke() // for the next sender, whose wake-up this one may have consumed
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
		if err := f.to.Send(buf); err != nil {
			f.failed <- fmt.Errorf("sending commands to the leader: %w", err)
			return
		}
		if cap(buf) > maxSpareBytes {
			buf = nil
		}
	}
}

// follow ends the current forwarding, if any, and sends this server's commands to f from
// now on. Only the control goroutine may call it.
func (n *Node) follow(f forwarder) {
	n.unfollow(errNewLeader)
	n.forwarding = &forwarding{to: f, local: n.intake, backlog: n.backlog, failed: make(chan error, 1), stop: make(chan struct{})}
	n.background.Go(n.forwarding.run)
}

// unfollow ends the forwarding, if any, and gives up the commands in flight. Only the
// control goroutine may call it.
func (n *Node) unfollow(reason error) {
	f := n.forwarding
	if f == nil {
		return
	}
	n.forwarding = nil
	f.halt()
	n.lose(reason)
}

// touch reports sessions that another server has heard from. Any goroutine may call it.
func (n *Node) touch(sessions []int64) {
	now := n.cfg.Now()
	events := make([]event, len(sessions))
	for i, id := range sessions {
		events[i] = event{kind: evTouched, session: id, at: now}
	}
	n.mail.post(events)
}

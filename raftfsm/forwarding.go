package raftfsm

import (
	"fmt"
	"sync"
)

// forwarder carries this server's commands to the leader.
type forwarder interface {
	// Send hands over one encoded run; runs arrive in the order of the calls.
	// It blocks while the leader takes no more. It does not keep the slice.
	Send(run []byte) error
	// Close ends the stream, and a Send that blocks.
	Close()
}

// forwarding sends what waits in the intake to one incarnation of a leader. It
// is to a follower what the proposer is to the leader.
type forwarding struct {
	to      forwarder
	local   *intake
	backlog *backlog
	failed  chan error // the first error
	stop    chan struct{}

	mu     sync.Mutex // held while runs are taken
	halted bool
}

// halt ends the forwarding: when it returns no further run will be taken.
func (f *forwarding) halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.halted {
		f.halted = true
		close(f.stop)
		f.to.Close()
	}
}

// take returns the next run in buf, or an empty slice if none is worth sending.
func (f *forwarding) take(buf []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted || !f.local.worth() {
		return buf[:0]
	}
	b, _ := f.local.take(buf[:0], 0)
	return b
}

// run sends until it is halted or the stream fails.
func (f *forwarding) run() {
	defer f.backlog.poke() // for the next one, whose wake-up this one may have taken
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

// follow makes f the way that this server's commands take from now on. Control
// goroutine only; whoever was followed before is unfollowed.
func (n *Node) follow(f forwarder) {
	n.unfollow(errNewLeader)
	n.forwarding = &forwarding{to: f, local: n.intake, backlog: n.backlog, failed: make(chan error, 1), stop: make(chan struct{})}
	n.background.Go(n.forwarding.run)
}

// unfollow ends the forwarding, if there is one, and gives up what is on its
// way. Control goroutine only.
func (n *Node) unfollow(reason error) {
	f := n.forwarding
	if f == nil {
		return
	}
	n.forwarding = nil
	f.halt()
	n.lose(reason)
}

// touch reports sessions that another server heard of. Any goroutine.
func (n *Node) touch(sessions []int64) {
	now := n.cfg.Now()
	events := make([]event, len(sessions))
	for i, id := range sessions {
		events[i] = event{kind: evTouched, session: id, at: now}
	}
	n.mail.post(events)
}

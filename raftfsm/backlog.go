package raftfsm

import "sync/atomic"

const (
	// commandWeight is what a command weighs beside its bytes: as much as it
	// costs to have an entry of its own is spread over some hundred commands.
	commandWeight = 512

	// fullWeight is from when on an entry, or a message to the leader, is worth
	// sending beside another that is on its way. It is about a hundred small
	// commands: what carries so many costs little more for being one of two,
	// while two that share thirty clients between them would cost each of the
	// thirty half of an entry, which is more than the command itself.
	fullWeight = 64 << 10
)

// weight is that of n commands which take some bytes in a run.
func weight(n, bytes int) int { return n*commandWeight + bytes }

// backlog weighs the commands that wait for being sent, of this server and of
// those that follow it, and wakes the one goroutine that sends them. What is not
// worth a message yet wakes nobody.
type backlog struct {
	waiting atomic.Int64
	marked  atomic.Int64  // what waited when the newest entry of this server was about to be applied
	target  atomic.Int64  // what must wait for add to wake the sender
	wake    chan struct{} // room for one
}

func newBacklog() *backlog { return &backlog{wake: make(chan struct{}, 1)} }

// add counts commands that came in. The caller has put them where the sender
// will find them.
func (b *backlog) add(weight int) {
	if b.waiting.Add(int64(weight)) >= b.target.Load() {
		b.poke()
	}
}

// taken counts commands that wait no longer.
func (b *backlog) taken(weight int) { b.waiting.Add(-int64(weight)) }

// mark notes what waits before anybody is answered.
func (b *backlog) mark() { b.marked.Store(b.waiting.Load()) }

// reached says whether as much as target waits; if not, add will wake the sender
// when it does. For the sender only.
func (b *backlog) reached(target int) bool {
	target = max(target, 1)
	b.target.Store(int64(target)) // before the look: add counts before it looks
	return b.waiting.Load() >= int64(target)
}

// poke wakes the sender, whatever waits.
func (b *backlog) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

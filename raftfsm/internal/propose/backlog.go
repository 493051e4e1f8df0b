package propose

import "sync/atomic"

const (
	// commandWeight is a command's weight in addition to its bytes. We choose it so that
	// about a hundred small commands add up to FullWeight.
	commandWeight = 512

	// FullWeight is the weight at which an entry, or a message to the leader, is sent
	// although another is in flight. It corresponds to about a hundred small commands.
	// Spread over a hundred commands, the cost of one more entry is small. If we split
	// thirty clients between two entries, each command's share of an entry would cost more
	// than the command itself.
	FullWeight = 64 << 10
)

// weight returns the weight of n commands with a total size of bytes in a run.
func weight(n, bytes int) int { return n*commandWeight + bytes }

// Backlog tracks the weight of the commands, from this server and its followers, that
// wait to be sent. It wakes the one goroutine that sends them, but only when they are
// worth a message.
type Backlog struct {
	waiting atomic.Int64
	target  atomic.Int64  // add wakes the sender when waiting reaches this
	wake    chan struct{} // capacity 1
}

// NewBacklog returns a Backlog without commands.
func NewBacklog() *Backlog { return &Backlog{wake: make(chan struct{}, 1)} }

// add counts new commands. The caller has already queued them for the sender.
func (b *Backlog) add(weight int) {
	if b.waiting.Add(int64(weight)) >= b.target.Load() {
		b.poke()
	}
}

// taken subtracts commands that no longer wait.
func (b *Backlog) taken(weight int) { b.waiting.Add(-int64(weight)) }

// reached reports whether the waiting weight is at least target. If not, add wakes the
// sender when it is, unless another call has set another target since.
func (b *Backlog) reached(target int) bool {
	target = max(target, 1)
	b.target.Store(int64(target)) // before the Load: add counts before it loads target
	return b.waiting.Load() >= int64(target)
}

// poke wakes the sender unconditionally.
func (b *Backlog) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

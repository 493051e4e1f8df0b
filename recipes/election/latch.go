package election

import (
	"context"
	"errors"
	"sync"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

// Latch is a candidate that campaigns in the background until it is closed. After it has
// lost a term, it campaigns again. Curator calls it LeaderLatch and uses the same znodes.
// All methods are safe for concurrent use.
type Latch struct {
	e      *Election
	cancel context.CancelFunc
	over   chan struct{}

	mu      sync.Mutex
	term    *Term
	changed chan struct{} // closed and replaced when term changes, closed permanently at the end
	err     error         // why the latch has ended
}

// NewLatch returns a latch that starts to campaign immediately. It continues until
// Close or a permanent error: see Err. NewLatch uses only the values of ctx, not its
// end.
func NewLatch(ctx context.Context, conn recipes.Conn, path string, id []byte, opts ...lock.Option) *Latch {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Latch{
		e: newElection(conn, path, id, latchName, opts), cancel: cancel,
		over: make(chan struct{}), changed: make(chan struct{}),
	}
	go l.run(ctx)
	return l
}

// ErrLatchClosed is the error of a latch that was closed.
var ErrLatchClosed = errors.New("latch closed")

func (l *Latch) run(ctx context.Context) {
	defer close(l.over)
	err := l.e.Run(ctx, func(ctx context.Context, term *Term) error {
		l.set(term)
		<-ctx.Done()
		l.set(nil)
		return context.Cause(ctx)
	})
	if errors.Is(err, context.Canceled) {
		err = ErrLatchClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	close(l.changed)
}

func (l *Latch) set(term *Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
	close(l.changed)
	l.changed = make(chan struct{})
}

// Term returns the term of this latch if it leads now, and nil otherwise.
// It checks the clock, like [lock.Lease.Err].
func (l *Latch) Term() *Term {
	l.mu.Lock()
	term := l.term
	l.mu.Unlock()
	if term == nil || term.Err() != nil {
		return nil
	}
	return term
}

// HasLeadership reports whether this latch leads.
func (l *Latch) HasLeadership() bool { return l.Term() != nil }

// Await waits until this latch leads.
func (l *Latch) Await(ctx context.Context) (*Term, error) {
	for {
		l.mu.Lock()
		changed, err := l.changed, l.err
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if term := l.Term(); term != nil {
			return term, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Err returns why the latch no longer campaigns, or nil while it does:
// [ErrLatchClosed], [client.ErrClosed], or a refusal of the server.
func (l *Latch) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Leader returns the current leader, like [Election.Leader].
func (l *Latch) Leader(ctx context.Context) (Leader, error) { return l.e.Leader(ctx) }

// Candidates returns all candidates, the leader first.
func (l *Latch) Candidates(ctx context.Context) ([]Leader, error) { return l.e.Candidates(ctx) }

// Close resigns or leaves the line, and waits for that. If the server does not reply, we
// continue in the background.
func (l *Latch) Close() {
	l.cancel()
	<-l.over
}

package election

import (
	"context"
	"errors"
	"sync"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

// Latch is a candidate that stands in the background until it is closed, leads
// when it is its turn, and stands again when it has lost a term. It is what
// Curator calls LeaderLatch, and its znodes are the same. All methods are safe for
// concurrent use.
type Latch struct {
	e      *Election
	cancel context.CancelFunc
	over   chan struct{}

	mu      sync.Mutex
	term    *Term
	changed chan struct{} // closed and replaced when term changes, closed for good at the end
	err     error         // why it has ended
}

// NewLatch returns a latch that stands for election at once, until Close, or until
// something that will not go away: see Err. ctx is not for its life but
// values.
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

// Term returns the term of this latch if it leads at this moment, otherwise nil.
// It looks at the clock, as [lock.Lease.Err] does.
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

// Err returns why the latch does not stand any more, nil as long as it does:
// [ErrLatchClosed], [client.ErrClosed], or a refusal of the server.
func (l *Latch) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Leader and Candidates are as those of [Election].
func (l *Latch) Leader(ctx context.Context) (Leader, error) { return l.e.Leader(ctx) }

// Candidates returns all candidates, the leader first.
func (l *Latch) Candidates(ctx context.Context) ([]Leader, error) { return l.e.Candidates(ctx) }

// Close resigns, or leaves the line. It waits for that; what a server does not
// answer goes on in the background.
func (l *Latch) Close() {
	l.cancel()
	<-l.over
}

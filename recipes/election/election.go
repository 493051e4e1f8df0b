package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

// Election is one candidate in an election. All methods are safe for concurrent use. Two
// Campaigns of one Election compete like two candidates.
type Election struct {
	conn  recipes.Conn
	path  string
	id    []byte
	name  string
	mutex *lock.Mutex
}

// Names of the znodes.
const (
	selectorName = "lock-"
	latchName    = "latch-"
)

// New returns a candidate for the election at path, which is a directory for its
// znodes and need not exist. id identifies the candidate to all clients. The znodes
// match Curator's LeaderSelector.
func New(conn recipes.Conn, path string, id []byte, opts ...lock.Option) *Election {
	return newElection(conn, path, id, selectorName, opts)
}

func newElection(conn recipes.Conn, path string, id []byte, name string, opts []lock.Option) *Election {
	opts = append([]lock.Option{lock.WithData(id), lock.WithName(name)}, opts...)
	return &Election{conn: conn, path: path, id: id, name: name, mutex: lock.NewMutex(conn, path, opts...)}
}

// Term is one leader's term: a [lock.Lease]. Done is closed before another candidate can
// lead.
type Term struct{ *lock.Lease }

// Proclaim replaces the leader's id with new data, which all observers see, provided
// that the candidate still leads.
func (t *Term) Proclaim(ctx context.Context, data []byte) error { return t.SetData(ctx, data) }

// Resign ends the term, like [lock.Lease.Release].
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Campaign waits until this candidate leads, like [lock.Mutex.Acquire]. A broken connection
// has no effect. If the session ends, the candidate loses its place in line.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	l, err := e.mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &Term{l}, nil
}

// Run campaigns and, whenever the candidate is elected, calls lead with a context that ends
// with the term. If the term was lost, Run campaigns again. Run returns when ctx ends, or
// when lead returns while the candidate still leads, with lead's error. If lead returns
// [Again], the candidate resigns and campaigns again.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	for {
		term, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		err = serve(ctx, term, lead)
		if errors.Is(err, lock.ErrLost) || errors.Is(err, errAgain) {
			if ctx.Err() == nil {
				continue
			}
		}
		return err
	}
}

var errAgain = errors.New("resign, and campaign again")

// Again is the error that a function passed to [Election.Run] should return to let another
// candidate lead and to campaign again.
func Again() error { return errAgain }

// resignation is how long a leader waits for the server at the end of a term.
const resignation = time.Second

// serve runs one term.
func serve(ctx context.Context, term *Term, lead func(ctx context.Context, term *Term) error) error {
	// If lead panics, we resign, so that there is no leader that does nothing.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignation)
		defer cancel()
		_ = term.Resign(ctx) // if this fails, it continues in the background
	}()
	leading, cancel := term.Context(ctx)
	defer cancel()
	err := lead(leading, term)
	if lost := term.Err(); lost != nil && ctx.Err() == nil {
		return errors.Join(lost, err)
	}
	return err
}

// Leader describes the current leader or a candidate.
type Leader struct {
	// Path is the path of its znode. It differs from term to term.
	Path string
	// Data is its id, or the data that it has proclaimed.
	Data  []byte
	Token lock.Token
}

// ErrNoLeader means that there is no leader now.
var ErrNoLeader = errors.New("no leader")

// Leader returns the current leader according to the server that the client is connected
// to.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	p, found, err := e.mutex.Holder(ctx)
	if err == nil && !found {
		err = fmt.Errorf("election %s: %w", e.path, ErrNoLeader)
	}
	if err != nil {
		return Leader{}, err
	}
	return Leader{Path: p.Path, Data: p.Data, Token: p.Token}, nil
}

// Candidates returns all candidates, the leader first, in the order in which they
// will lead.
func (e *Election) Candidates(ctx context.Context) ([]Leader, error) {
	list, err := e.mutex.Participants(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Leader, len(list))
	for i, p := range list {
		all[i] = Leader{Path: p.Path, Data: p.Data, Token: p.Token}
	}
	return all, nil
}

// Interrupt asks the leader to resign, like Curator's
// LeaderSelector.interruptLeadership. It closes the RevokeRequested channel of the
// leader's Term.
func (e *Election) Interrupt(ctx context.Context) error {
	l, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	err = lock.Revoke(ctx, e.conn, l.Path)
	if errors.Is(err, client.ErrNoNode) {
		return nil // the leader has resigned
	}
	return err
}

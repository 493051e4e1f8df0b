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

// Election is one candidate's part in an election. All methods are safe for
// concurrent use; two Campaigns of one Election compete as two candidates do.
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
// znodes and need not exist. id tells everybody who this is. The znodes are those
// of Curator's LeaderSelector.
func New(conn recipes.Conn, path string, id []byte, opts ...lock.Option) *Election {
	return newElection(conn, path, id, selectorName, opts)
}

func newElection(conn recipes.Conn, path string, id []byte, name string, opts []lock.Option) *Election {
	opts = append([]lock.Option{lock.WithData(id), lock.WithName(name)}, opts...)
	return &Election{conn: conn, path: path, id: id, name: name, mutex: lock.NewMutex(conn, path, opts...)}
}

// Term is the time of one leader: a [lock.Lease]. Done is closed before another
// can lead.
type Term struct{ *lock.Lease }

// Proclaim replaces the leader's id by something new, which everybody who observes
// gets to see, provided that he still leads.
func (t *Term) Proclaim(ctx context.Context, data []byte) error { return t.SetData(ctx, data) }

// Resign ends the term, as [lock.Lease.Release] does.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Campaign waits until this candidate leads, as [lock.Mutex.Acquire] waits for a
// lock: a connection that breaks costs nothing, a session that ends the place in
// line.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	l, err := e.mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &Term{l}, nil
}

// Run campaigns and, whenever it is elected, calls lead with a context that ends
// with the term. It campaigns again when the term was lost, and returns when lead
// returns while it still leads, with lead's error, or when ctx ends. [Again] as
// lead's error resigns and campaigns again.
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

// Again is what a function passed to [Election.Run] returns to let another lead and
// to stand as a candidate again.
func Again() error { return errAgain }

// resignation is how long the end of a term waits for a server.
const resignation = time.Second

// serve is one term.
func serve(ctx context.Context, term *Term, lead func(ctx context.Context, term *Term) error) error {
	// A panic of lead must not leave a leader who does nothing.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignation)
		defer cancel()
		_ = term.Resign(ctx) // what fails goes on in the background
	}()
	leading, cancel := term.Context(ctx)
	defer cancel()
	err := lead(leading, term)
	if lost := term.Err(); lost != nil && ctx.Err() == nil {
		return errors.Join(lost, err)
	}
	return err
}

// Leader is who leads.
type Leader struct {
	// Path of his znode: another term has another.
	Path string
	// Data is his id, or what he has proclaimed.
	Data  []byte
	Token lock.Token
}

// ErrNoLeader says that there is no leader at the moment.
var ErrNoLeader = errors.New("no leader")

// Leader returns who leads, as the server that the client is connected to knows it.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	p, there, err := e.mutex.Holder(ctx)
	if err == nil && !there {
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

// Interrupt asks the leader to resign, as Curator's LeaderSelector.interruptLeadership
// asks its own: his Term's RevokeRequested is closed.
func (e *Election) Interrupt(ctx context.Context) error {
	l, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	err = lock.Revoke(ctx, e.conn, l.Path)
	if errors.Is(err, client.ErrNoNode) {
		return nil // he has resigned
	}
	return err
}

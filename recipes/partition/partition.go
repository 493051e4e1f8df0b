package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/recipes/node"
)

// DefaultQuietTime is the quiet time of a [Partitioner] without WithQuietTime.
const DefaultQuietTime = 30 * time.Second

var (
	// ErrRunning is the error of a Run that is called while another one is running.
	ErrRunning = errors.New("it is running already")
	// ErrBadItem means that an item, or a member's id, can't be part of a path, or
	// that a share has an item that is not in the set.
	ErrBadItem = errors.New("bad item")

	// errChanged ends a share when the members have changed.
	errChanged = errors.New("the members have changed")
)

// State is the state of a [Partitioner]. Kazoo's states have the same names, except
// Ended, which Kazoo calls FAILURE.
type State uint8

// The states.
const (
	// Allocating means that there is no share yet: the members are not settled, or
	// the member waits for locks. It is also the state before Run.
	Allocating State = iota
	// Acquired means that there is a share, which may be empty.
	Acquired
	// Releasing means that the member must give up its share. It lasts until work has
	// returned and the locks are released.
	Releasing
	// Ended means that Run has returned. You can call Run again.
	Ended
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"allocating", "acquired", "releasing", "ended"}[s]
}

// Option configures a [Partitioner].
type Option func(*Partitioner)

// WithQuietTime sets how long the list of members must be unchanged before we compute
// shares, [DefaultQuietTime] by default. Kazoo calls it time_boundary. All members should
// use the same value. It should be longer than a member's restart: otherwise each restart
// moves all items twice.
func WithQuietTime(d time.Duration) Option { return func(p *Partitioner) { p.quiet = d } }

// WithShares sets the function that computes shares: of is one of members, and members and
// set are sorted. All members must use the same function: if two members claim an item, one
// gets it and blocks the other; if no member claims an item, no member has it. By default,
// the n-th of m members gets every m-th item, starting with the n-th, as with Kazoo.
func WithShares(f func(of string, members, set []string) []string) Option {
	return func(p *Partitioner) { p.shares = f }
}

// WithACL sets the ACL of the znodes of the party and the locks. All members must be
// able to list their directories and to delete their own znodes.
func WithACL(acl ...client.ACL) Option { return func(p *Partitioner) { p.acl = acl } }

// WithLossPolicy decides when the locks of a share count as lost.
func WithLossPolicy(policy recipes.LossPolicy) Option {
	return func(p *Partitioner) { p.policy = policy }
}

// Partitioner is one member of a party that shares a set. All methods are safe for
// concurrent use.
type Partitioner struct {
	conn   recipes.Conn
	dir    string
	id     string
	set    []string // sorted
	quiet  time.Duration
	shares func(of string, members, set []string) []string
	acl    []client.ACL
	policy recipes.LossPolicy

	mu      sync.Mutex
	running bool
	state   State
	finish  <-chan struct{} // while Acquired: closed when the share must be given up
}

// New returns a member of the party at dir, which need not exist. id must be unique
// among the members. set must be the same for all members; its order does not matter.
// Neither id nor items may be empty or contain a slash. New sends no request.
func New(conn recipes.Conn, dir, id string, set []string, opts ...Option) *Partitioner {
	p := &Partitioner{conn: conn, dir: dir, id: id, set: sorted(set), quiet: DefaultQuietTime, shares: deal}
	for _, o := range opts {
		o(p)
	}
	return p
}

func sorted(items []string) []string { return slices.Compact(slices.Sorted(slices.Values(items))) }

// deal gives a member every n-th item, where n is the number of members.
func deal(of string, members, set []string) (share []string) {
	for i := slices.Index(members, of); i >= 0 && i < len(set); i += len(members) {
		share = append(share, set[i])
	}
	return share
}

// State returns the current state.
func (p *Partitioner) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Acquired {
		select {
		case <-p.finish:
			return Releasing
		default:
		}
	}
	return p.state
}

func (p *Partitioner) enter(s State, finish <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.finish = s, finish
}

// Run joins the party and calls work, in Run's own goroutine, with one share after another,
// including empty ones. The context of work ends when the member must give up the share: the
// members have changed, a lock may be lost, or ctx has ended. Until work has returned, other
// clients can't get its items (unless a lock was lost), so work should return soon. If work
// returns nil earlier, the member keeps the share until then. If work returns an error while
// its context has not ended, Run returns it.
//
// If the connection is lost, Run waits for the next one. Members that reconnect before
// their sessions end keep their shares, unless WithLossPolicy demands otherwise. If the
// session is about to end, the member gives up its share first. It then joins again and
// gets another share when the party is quiet.
//
// Run returns when ctx ends, with its cause; with the error of work; with
// [client.ErrClosed]; or with a refusal of the server, e.g. [client.ErrNoAuth]. By then it
// has released the locks and left the party. If the server does not reply within seconds,
// we continue in the background, until the end of the session at the latest.
func (p *Partitioner) Run(ctx context.Context, work func(ctx context.Context, share Share) error) error {
	if err := p.begin(); err != nil {
		return p.failure(err)
	}
	defer p.end()
	group := node.NewGroup(p.conn, recipe.Join(p.dir, "party"))
	defer group.Close()
	me := group.Join(node.ShallowPartyName(p.id), []byte(p.id), node.WithACL(p.acl...))
	defer me.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	members := newRoster()
	over := make(chan struct{})
	go func() {
		defer close(over)
		cancel(members.follow(ctx, group))
	}()
	defer func() {
		cancel(nil)
		<-over
	}()
	for {
		now, changed, err := members.settle(ctx, p.id, p.quiet)
		if err == nil {
			err = p.round(ctx, now, changed, work)
		} else if !me.Exists() {
			err = errors.Join(err, me.Wait(ctx)) // why it could not join
		}
		if !errors.Is(err, errChanged) && !errors.Is(err, lock.ErrLost) {
			return p.failure(err)
		}
	}
}

// begin allows only one Run at a time.
func (p *Partitioner) begin() error {
	for _, part := range append([]string{p.id}, p.set...) {
		if part == "" || part == "." || part == ".." || strings.Contains(part, "/") {
			return fmt.Errorf("%w: %q", ErrBadItem, part)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		return ErrRunning
	}
	p.running, p.state = true, Allocating
	return nil
}

func (p *Partitioner) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.state = false, Ended
}

func (p *Partitioner) failure(err error) error { return fmt.Errorf("partition %s: %w", p.dir, err) }

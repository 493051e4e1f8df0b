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
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/recipes/node"
)

// DefaultQuietTime is the quiet time of a [Partitioner] without WithQuietTime.
const DefaultQuietTime = 30 * time.Second

var (
	// ErrRunning is the answer of a second Run at one time.
	ErrRunning = errors.New("it is running already")
	// ErrBadItem says that an item, or a member's id, cannot be part of a path, or
	// that a share has an item that is not in the set.
	ErrBadItem = errors.New("bad item")

	// errChanged is why a share ends that has to be made anew.
	errChanged = errors.New("the members have changed")
)

// State is how far a [Partitioner] has come. Kazoo's states have the same names,
// but for Ended, its FAILURE.
type State uint8

// The states.
const (
	// Allocating is without a share: the members are not settled, or locks are waited
	// for. It is also the state before Run.
	Allocating State = iota
	// Acquired is with a share, which may be empty.
	Acquired
	// Releasing is when the share has to be given up, until its work has returned and
	// the locks are released.
	Releasing
	// Ended is when Run has returned; Run can be called again.
	Ended
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"allocating", "acquired", "releasing", "ended"}[s]
}

// Option changes a [Partitioner].
type Option func(*Partitioner)

// WithQuietTime sets for how long the members must not have changed before shares
// are made, [DefaultQuietTime] by default: what Kazoo calls time_boundary. Members
// should agree about it, and it should be longer than a restart of one takes, or each
// restart moves all items twice.
func WithQuietTime(d time.Duration) Option { return func(p *Partitioner) { p.quiet = d } }

// WithShares sets how shares are made: of is one of members, and those and set are
// sorted. All members have to agree about it: an item that two claim is with one of
// them and holds the other up, one that nobody claims is with nobody. By default the
// n-th of m members gets every m-th item from the n-th on, as with Kazoo.
func WithShares(f func(of string, members, set []string) []string) Option {
	return func(p *Partitioner) { p.shares = f }
}

// WithACL sets the ACL of the party's and the locks' znodes. All members must be
// able to list their directories, and to delete their own.
func WithACL(acl ...client.ACL) Option { return func(p *Partitioner) { p.acl = acl } }

// WithLossPolicy says when the locks of a share count as lost.
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
	finish  <-chan struct{} // while Acquired: closed when the share has to be given up
}

// New returns a member of the party at dir, which need not exist. id is the member's
// and nobody else's. set is the same for all members; order does not matter. Neither
// id nor items may be empty or contain a slash. Nothing is done before Run.
func New(conn recipes.Conn, dir, id string, set []string, opts ...Option) *Partitioner {
	p := &Partitioner{conn: conn, dir: dir, id: id, set: sorted(set), quiet: DefaultQuietTime, shares: deal}
	for _, o := range opts {
		o(p)
	}
	return p
}

func sorted(items []string) []string { return slices.Compact(slices.Sorted(slices.Values(items))) }

// deal gives every member each n-th item.
func deal(of string, members, set []string) (share []string) {
	for i := slices.Index(members, of); i >= 0 && i < len(set); i += len(members) {
		share = append(share, set[i])
	}
	return share
}

// State returns how far it has come.
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

// Run joins the party and calls work, in its own goroutine, with one share after the
// other, also with an empty one. The context that work gets ends when the share has to
// be given up: the members have changed, a lock may be lost, or ctx has ended. Nobody
// else can have an item whose lock was not lost before work has returned, so it should
// return soon. If it returns nil before that, the share is held until then; its error,
// unless the context had ended, ends Run.
//
// A broken connection is waited out: members that are back before their sessions end
// keep their shares, unless WithLossPolicy says otherwise. When the session ends,
// the share is given up before, and the member joins again and gets another share
// when the party is quiet.
//
// Run returns when ctx ends, with its cause; with the error of work; with
// [client.ErrClosed]; or with what the server refuses, for instance
// [client.ErrNoAuth]. By then the locks are released and the party is left; what the
// server does not answer within seconds goes on in the background, and ends with the
// session at the latest.
func (p *Partitioner) Run(ctx context.Context, work func(ctx context.Context, share Share) error) error {
	if err := p.begin(); err != nil {
		return p.failure(err)
	}
	defer p.end()
	group := node.NewGroup(p.conn, recipes.Join(p.dir, "party"))
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

// begin admits one Run at a time.
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

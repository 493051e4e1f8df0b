package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/election"
)

// What a [Sharder] does without options: Curator's defaults.
const (
	DefaultShardThreshold     = 10000
	DefaultShardCheckInterval = 30 * time.Second
	DefaultMaxShards          = 10
)

var (
	// ErrSharderClosed is the error of a sharder that was closed.
	ErrSharderClosed = errors.New("sharder closed")
	// ErrBadSharder says that a sharder's paths or options make no sense.
	ErrBadSharder = errors.New("bad sharder")
)

// ShardOption changes a [Sharder].
type ShardOption func(*shardPolicy)

// WithShardThreshold sets how many items in one queue call for another queue.
func WithShardThreshold(items int) ShardOption {
	return func(p *shardPolicy) { p.threshold = items }
}

// WithShardCheckInterval sets how often the queues are measured.
func WithShardCheckInterval(d time.Duration) ShardOption {
	return func(p *shardPolicy) { p.interval = d }
}

// WithMaxShards sets how many queues there may be before none is added.
func WithMaxShards(n int) ShardOption { return func(p *shardPolicy) { p.most = n } }

// shardPolicy is what options set: Curator's QueueSharderPolicies.
type shardPolicy struct {
	threshold int
	interval  time.Duration
	most      int
}

// Sharder spreads items over several queues below one path, since one queue with very
// many items cannot be listed any more: Curator's QueueSharder. Order is kept within a
// queue, not among them. All methods are safe for concurrent use.
//
// At every interval each sharder measures all queues. One that has reached the
// threshold is given out by Queue no more, until it has come down to half of it. Of all
// sharders one leads, by a Curator LeaderLatch, and adds one queue at every check that
// finds a queue at the threshold, until there are as many as there may be. The others
// learn of it by a watch. All should have the same options. Queues are never removed: a
// znode that somebody deletes comes back with the next Put or Take.
//
// A broken connection is waited out, and so is a session that ends: meanwhile Queue
// gives out what is known, and nothing is added by a sharder that may not lead any
// more, since the server checks that in the transaction that adds. A queue whose
// addition was not answered is looked for by its name, and not added twice.
type Sharder[Q any] struct {
	shardPolicy
	conn   recipes.Conn
	path   string
	leader string
	open   func(conn recipes.Conn, path string, opts ...Option) Q
	cancel context.CancelFunc
	over   chan struct{}

	mu      sync.Mutex
	shards  map[string]*shard[Q] // by path
	changed chan struct{}        // closed and replaced when shards or ended change
	err     error                // of the last check
	ended   error                // why there will be no other
}

// shard is one of the queues.
type shard[Q any] struct {
	queue Q
	full  bool
}

// NewSharder returns a sharder of the queues below path when it knows them, and has
// made one if there was none; two that begin at one time may make one each. It works
// until Close. ctx is not for its life but values; if it ends before NewSharder returns,
// that is an error, and a queue that was made stays.
//
// The leader's latch is at leaderPath, which must not be at path or below. open makes
// each queue, for instance [New] or [NewDelay]: it is called once for every queue, one
// at a time, with options that put the claims into a directory of the queue's name
// below path and "-claims", where Curator's allocators have to set their lockPath too.
// Nothing but queues may be below path.
func NewSharder[Q any](ctx context.Context, conn recipes.Conn, path, leaderPath string,
	open func(conn recipes.Conn, path string, opts ...Option) Q, opts ...ShardOption,
) (*Sharder[Q], error) {
	s := &Sharder[Q]{
		shardPolicy: shardPolicy{DefaultShardThreshold, DefaultShardCheckInterval, DefaultMaxShards},
		conn:        conn, path: path, leader: leaderPath, open: open, over: make(chan struct{}),
		shards: make(map[string]*shard[Q]), changed: make(chan struct{}),
	}
	for _, o := range opts {
		o(&s.shardPolicy)
	}
	if s.threshold <= 0 || s.interval <= 0 || s.most <= 0 || strings.HasPrefix(leaderPath+"/", strings.TrimSuffix(path, "/")+"/") {
		return nil, s.failure(ErrBadSharder)
	}
	if err := s.begin(ctx); err != nil {
		return nil, s.failure(err)
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go s.run(ctx)
	return s, nil
}

func (s *Sharder[Q]) failure(err error) error { return fmt.Errorf("sharder %s: %w", s.path, err) }

// Queue returns one of the queues at random, of those below the threshold if there
// are such.
func (s *Sharder[Q]) Queue() Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, some []*shard[Q]
	for _, sh := range s.shards {
		all = append(all, sh)
		if !sh.full {
			some = append(some, sh)
		}
	}
	if len(some) == 0 {
		some = all
	}
	return some[rand.IntN(len(some))].queue //nolint:gosec // no secret
}

// Paths returns the paths of the queues, sorted.
func (s *Sharder[Q]) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.shards))
}

// Err returns why the last check failed, nil if it did not. It is tried again at the
// next interval, but for [ErrSharderClosed] and [client.ErrClosed].
func (s *Sharder[Q]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	return s.err
}

// Run calls work for each queue in a goroutine of its own, also for those that are
// added later: consumers. When an error comes from one, the context of all ends, and
// Run returns that error; otherwise it returns when ctx ends, with its cause, or with
// what Err says when the sharder has ended. All calls have returned by then. A queue
// whose work returns nil is not worked on again.
func (s *Sharder[Q]) Run(ctx context.Context, work func(ctx context.Context, q Q) error) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := make(map[string]bool)
	for {
		s.mu.Lock()
		shards, changed, ended := maps.Clone(s.shards), s.changed, s.ended
		s.mu.Unlock()
		if ended != nil {
			return ended
		}
		for path, sh := range shards {
			if begun[path] {
				continue
			}
			begun[path] = true
			calls.Go(func() {
				if err := work(ctx, sh.queue); err != nil {
					cancel(err)
				}
			})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.failure(context.Cause(ctx))
		}
	}
}

// Close ends the checks, and the sharder's part in the election; it waits for that,
// and what a server does not answer goes on in the background. The queues stay, and
// can be used.
func (s *Sharder[Q]) Close() {
	s.cancel()
	<-s.over
}

// newShard returns the path of a queue that is not there yet, named as Curator does.
func (s *Sharder[Q]) newShard() string {
	return recipes.Join(s.path, prefix+recipes.NewUUID())
}

// begin finds the queues, and makes the first.
func (s *Sharder[Q]) begin(ctx context.Context) error {
	first := s.newShard() // the same at every attempt
	return recipes.InSession(ctx, s.conn, func(session recipes.Session) error {
		if err := recipes.EnsureContainers(ctx, session, s.path); err != nil {
			return err
		}
		if err := session.Sync(ctx, s.path); err != nil {
			return err
		}
		names, _, err := session.Children(ctx, s.path)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			_, err := session.Create(ctx, first, nil, recipes.Persistent, nil)
			if err != nil && !errors.Is(err, client.ErrNodeExists) {
				return err
			}
			s.adopt(first)
		}
		for _, name := range names {
			s.adopt(recipes.Join(s.path, name))
		}
		return nil
	})
}

// adopt opens a queue that is new.
func (s *Sharder[Q]) adopt(path string) {
	s.mu.Lock()
	known := s.shards[path] != nil
	s.mu.Unlock()
	if known {
		return
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	q := s.open(s.conn, path, WithClaims(recipes.Join(s.path+"-claims", name)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards[path] = &shard[Q]{queue: q}
	close(s.changed)
	s.changed = make(chan struct{})
}

// run checks until ctx ends.
func (s *Sharder[Q]) run(ctx context.Context) {
	defer close(s.over)
	latch := election.NewLatch(ctx, s.conn, s.leader, nil)
	defer func() { latch.Close() }()
	clock := time.NewTicker(s.interval)
	defer clock.Stop()
	measure := false
	for {
		refused := latch.Err()
		if refused != nil { // perhaps not for ever
			latch.Close()
			latch = election.NewLatch(ctx, s.conn, s.leader, nil)
		}
		w, err := s.check(ctx, latch, measure)
		if s.report(ctx, errors.Join(err, refused)) {
			if w != nil {
				recipes.Drop(ctx, w)
			}
			return
		}
		measure = pause(ctx, clock.C, w)
	}
}

// pause waits for a change, or until it is time to measure: then it returns true. It
// takes the watch away, if there is one.
func pause(ctx context.Context, due <-chan time.Time, w recipes.Watch) bool {
	var events <-chan client.Event
	if w != nil {
		events = w.Events()
		defer recipes.Drop(ctx, w)
	}
	select {
	case <-due:
		return true
	case <-events:
	case <-ctx.Done():
	}
	return false
}

// report keeps the error of a check, and says whether there will be no other.
func (s *Sharder[Q]) report(ctx context.Context, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
	if err != nil {
		s.err = s.failure(err)
	}
	switch {
	case ctx.Err() != nil:
		s.ended = s.failure(ErrSharderClosed)
	case errors.Is(err, client.ErrClosed):
		s.ended = s.err
	default:
		return false
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// check adopts what is new and leaves a watch, unless it fails. If it is time to measure
// it looks at the sizes, and adds a queue if that is needed and the latch leads.
func (s *Sharder[Q]) check(ctx context.Context, latch *election.Latch, measure bool) (w recipes.Watch, err error) {
	added := s.newShard() // the same at every attempt
	err = recipes.InSession(ctx, s.conn, func(session recipes.Session) error {
		var term *election.Term
		if measure {
			term = latch.Term()
		}
		if term != nil {
			// Who led before may have added what this server does not know yet.
			if err := session.Sync(ctx, s.path); err != nil {
				return err
			}
		}
		if w, err = s.list(ctx, session); err != nil || !measure {
			return err
		}
		full, err := s.measure(ctx, session)
		if err == nil && full && term != nil && len(s.Paths()) < s.most {
			err = s.add(ctx, term, added) // which the watch tells, too
		}
		if err != nil {
			recipes.Drop(ctx, w)
			w = nil
		}
		return err
	})
	return w, err
}

// list adopts what is new, and leaves a watch.
func (s *Sharder[Q]) list(ctx context.Context, session recipes.Session) (recipes.Watch, error) {
	for {
		names, _, w, err := session.ChildrenW(ctx, s.path)
		if err == nil {
			for _, name := range names {
				s.adopt(recipes.Join(s.path, name))
			}
			return w, nil
		}
		if !errors.Is(err, client.ErrNoNode) {
			return nil, err
		}
		if err := recipes.EnsureContainers(ctx, session, s.path); err != nil {
			return nil, err
		}
	}
}

// measure reports whether a queue has reached the threshold.
func (s *Sharder[Q]) measure(ctx context.Context, session recipes.Session) (full bool, err error) {
	for _, path := range s.Paths() {
		stat, _, err := session.Exists(ctx, path)
		if err != nil {
			return false, err
		}
		items := int(stat.NumChildren)
		s.mu.Lock()
		switch sh := s.shards[path]; {
		case items >= s.threshold:
			sh.full, full = true, true
		case items <= s.threshold/2:
			sh.full = false
		}
		s.mu.Unlock()
	}
	return full, nil
}

// add creates a queue, unless another leads. An attempt that was done without an answer
// is found by the next one.
func (s *Sharder[Q]) add(ctx context.Context, term *election.Term, path string) error {
	for {
		err := term.Multi(ctx, recipes.Op{Kind: recipes.OpCreate, Path: path, Mode: recipes.Persistent})
		switch {
		case err == nil, errors.Is(err, client.ErrNodeExists), term.Err() != nil:
			return nil
		case !recipes.Again(ctx, err):
			return err
		}
	}
}

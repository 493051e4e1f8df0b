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
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/election"
)

// Defaults of a [Sharder], the same as Curator's.
const (
	DefaultShardThreshold     = 10000
	DefaultShardCheckInterval = 30 * time.Second
	DefaultMaxShards          = 10
)

var (
	// ErrSharderClosed is the error of a sharder that was closed.
	ErrSharderClosed = errors.New("sharder closed")
	// ErrBadSharder means that a sharder's paths or options are not valid.
	ErrBadSharder = errors.New("bad sharder")
)

// ShardOption configures a [Sharder].
type ShardOption func(*shardPolicy)

// WithShardThreshold sets the number of items in one queue at which another queue is
// added.
func WithShardThreshold(items int) ShardOption {
	return func(p *shardPolicy) { p.threshold = items }
}

// WithShardCheckInterval sets how often the sharder checks the sizes of the queues.
func WithShardCheckInterval(d time.Duration) ShardOption {
	return func(p *shardPolicy) { p.interval = d }
}

// WithMaxShards sets the maximum number of queues.
func WithMaxShards(n int) ShardOption { return func(p *shardPolicy) { p.most = n } }

// shardPolicy is the set of options, Curator's QueueSharderPolicies.
type shardPolicy struct {
	threshold int
	interval  time.Duration
	most      int
}

// Sharder distributes items among several queues below one path, because a client can't
// list a queue with very many items. It is Curator's QueueSharder. We keep the order within
// a queue, but not among queues. All methods are safe for concurrent use.
//
// At every interval, each sharder checks the sizes of all queues. After a queue has reached
// the threshold, Queue prefers other queues until its size has dropped to half of the
// threshold. One sharder leads, elected with a Curator LeaderLatch. It adds one queue at
// every check that finds a queue at the threshold, up to the maximum number of queues. The
// others learn of the new queue through a watch. All sharders should have the same options.
// We never remove queues: if a client deletes a queue's znode, the next Put or Take creates
// it again.
//
// If the connection or the session is lost, a Sharder waits for the next one. In the
// meantime Queue returns the known queues. A sharder that may no longer lead adds no queue,
// because the transaction that adds one also checks that the sharder leads. If the reply to
// an addition was lost, we look for the queue by its name, so that we don't add it twice.
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
	err     error                // error of the last check
	ended   error                // why there will be no other check
}

// shard is one of the queues.
type shard[Q any] struct {
	queue Q
	full  bool
}

// NewSharder returns a sharder of the queues below path after it has found them. If there
// was none, it creates one. Two sharders that start concurrently may create one each. The
// sharder works until Close. NewSharder uses ctx only until it returns, and keeps its
// values. If ctx ends before that, NewSharder fails, and a queue that it has created
// remains.
//
// The leader's latch is at leaderPath, which must not be path or below it. open opens
// each queue, e.g. [New] or [NewDelay]. The sharder calls it once for every queue,
// one at a time. Its options put the claims into a directory that is named after the
// queue, below path followed by "-claims"; Curator's allocators must set their
// lockPath to the same directory. Only queues may be below path.
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

// Queue returns a random queue, below the threshold if there is one.
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
	return some[rand.IntN(len(some))].queue //nolint:gosec // not security-relevant
}

// Paths returns the paths of the queues, sorted.
func (s *Sharder[Q]) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.shards))
}

// Err returns why the last check failed, or nil if it succeeded. The sharder checks
// again at the next interval, unless the error is [ErrSharderClosed] or
// [client.ErrClosed].
func (s *Sharder[Q]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	return s.err
}

// Run is for consumers. It calls work for each queue in a separate goroutine, including
// queues that are added later. If a call returns an error, Run cancels the context of all
// calls and returns that error. Otherwise Run returns when ctx ends, with its cause, or
// when the sharder has ended, with the error of Err. Run returns after all calls have
// returned. After work has returned nil, Run does not call it again for the same queue.
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

// Close ends the checks, withdraws the sharder from the election, and waits for both. If
// the server does not reply, we continue in the background. The queues remain usable.
func (s *Sharder[Q]) Close() {
	s.cancel()
	<-s.over
}

// newShard returns the path of a new queue, named like Curator's.
func (s *Sharder[Q]) newShard() string {
	return recipe.Join(s.path, prefix+recipe.NewUUID())
}

// begin finds the queues and creates the first.
func (s *Sharder[Q]) begin(ctx context.Context) error {
	first := s.newShard() // the same at every attempt
	return recipe.InSession(ctx, s.conn, func(session recipes.Session) error {
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
			s.adopt(recipe.Join(s.path, name))
		}
		return nil
	})
}

// adopt opens a queue if it is new.
func (s *Sharder[Q]) adopt(path string) {
	s.mu.Lock()
	known := s.shards[path] != nil
	s.mu.Unlock()
	if known {
		return
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	q := s.open(s.conn, path, WithClaims(recipe.Join(s.path+"-claims", name)))
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
		if refused != nil { // perhaps temporarily
			latch.Close()
			latch = election.NewLatch(ctx, s.conn, s.leader, nil)
		}
		w, err := s.check(ctx, latch, measure)
		if s.report(ctx, errors.Join(err, refused)) {
			if w != nil {
				recipe.Drop(ctx, w)
			}
			return
		}
		measure = pause(ctx, clock.C, w)
	}
}

// pause waits for a change or for the time of the next measurement. It returns true in the
// latter case. It removes the watch, if there is one.
func pause(ctx context.Context, due <-chan time.Time, w recipes.Watch) bool {
	var events <-chan client.Event
	if w != nil {
		events = w.Events()
		defer recipe.Drop(ctx, w)
	}
	select {
	case <-due:
		return true
	case <-events:
	case <-ctx.Done():
	}
	return false
}

// report stores the error of a check, and reports whether there will be no other
// check.
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

// check adopts new queues and sets a watch, unless it fails. If measure is true,
// check measures the queues, and adds one if that is needed and the latch leads.
func (s *Sharder[Q]) check(ctx context.Context, latch *election.Latch, measure bool) (w recipes.Watch, err error) {
	added := s.newShard() // the same at every attempt
	err = recipe.InSession(ctx, s.conn, func(session recipes.Session) error {
		var term *election.Term
		if measure {
			term = latch.Term()
		}
		if term != nil {
			// We sync because an earlier leader may have added queues that this server does
			// not know yet.
			if err := session.Sync(ctx, s.path); err != nil {
				return err
			}
		}
		if w, err = s.list(ctx, session); err != nil || !measure {
			return err
		}
		full, err := s.measure(ctx, session)
		if err == nil && full && term != nil && len(s.Paths()) < s.most {
			err = s.add(ctx, term, added) // the watch will report the new queue, too
		}
		if err != nil {
			recipe.Drop(ctx, w)
			w = nil
		}
		return err
	})
	return w, err
}

// list adopts new queues and sets a watch.
func (s *Sharder[Q]) list(ctx context.Context, session recipes.Session) (recipes.Watch, error) {
	for {
		names, _, w, err := session.ChildrenW(ctx, s.path)
		if err == nil {
			for _, name := range names {
				s.adopt(recipe.Join(s.path, name))
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

// add creates a queue, unless another sharder leads. If an attempt succeeded but its reply
// was lost, the next attempt finds its queue.
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

package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// DefaultLease is how long a [LeaseLock] lasts from one renewal to the next.
const DefaultLease = 30 * time.Second

// LeaseLock is a lock that lasts for a time, as Redisson's: it outlives the
// session and the connection of its holder, and ends at a known time if the
// holder is no more. It is fair, and reentrant for an [Owner]. All methods are
// safe for concurrent use.
//
// Without [WithLease] it is a lease of [DefaultLease] that is renewed every third
// of it for as long as the process lives and reaches a server; if it does not, the
// Lease ends before anybody else can have the lock. With WithLease it is never
// renewed.
//
// # What it rests on
//
// The holder is a persistent znode. Who waits does not look at a clock of another
// machine: he measures, with his own monotonic clock, how long the znode has been
// there without a renewal since he first saw it, and may delete it after the time
// that it names. The holder counts from before the sending of the request that
// created or renewed it, so he is always the first to see it end, and he stops a
// twentieth earlier, for clocks that run at different speed. No znode with a time
// to live is needed, and no agreement about the time of day.
//
// [Revoke] reaches a holder with his next renewal, so not one of WithLease.
//
// It costs that after the death of a holder whoever comes then waits a whole
// lease; a [Mutex] is free when the session has ended.
type LeaseLock struct {
	line   line // who waits
	holder line // who holds: one at most
	lease  time.Duration
	renew  bool
	owners owners
}

// holderInfix names the znode of the holder: a mark, how long its lease is in
// milliseconds, this, and the number. The time is in the name because data can be
// replaced, by SetData and by Revoke.
const holderInfix = "ms-holder-"

// leaseOf returns how long the lease of a holder's znode is.
func leaseOf(name string) (time.Duration, error) {
	i := strings.LastIndex(name, holderInfix)
	millis, err := strconv.ParseInt(name[strings.LastIndexByte(name[:i], '-')+1:i], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the holder's znode %s: %w", name, err)
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// LeaseOption changes a [LeaseLock].
type LeaseOption func(*LeaseLock)

// WithLease sets how long the lock lasts, from its acquisition to its end: it is
// not renewed.
func WithLease(d time.Duration) LeaseOption {
	return func(l *LeaseLock) { l.lease, l.renew = d, false }
}

// WithWatchdog sets how long the lock lasts from one renewal to the next; it is
// renewed every third of that.
func WithWatchdog(d time.Duration) LeaseOption {
	return func(l *LeaseLock) { l.lease, l.renew = d, true }
}

// WithOptions sets what is common to all locks. There is no loss policy: it is the
// lease that counts, not the session.
func WithOptions(opts ...Option) LeaseOption {
	return func(l *LeaseLock) { l.line.cfg = newConfig(opts) }
}

// NewLeaseLock returns the lease lock at path, which is a directory for its
// znodes. It need not exist.
func NewLeaseLock(conn recipes.Conn, path string, opts ...LeaseOption) *LeaseLock {
	l := &LeaseLock{
		line:   line{conn: conn, dir: recipes.Join(path, "waiters"), infixes: infixes{exclusive: curatorLayout.mutex}, cfg: newConfig(nil)},
		holder: line{conn: conn, dir: recipes.Join(path, "holder"), infixes: infixes{leases: holderInfix}},
		lease:  DefaultLease, renew: true,
	}
	for _, o := range opts {
		o(l)
	}
	l.holder.cfg = l.line.cfg
	l.line.cfg.data = nil
	return l
}

// HeldError says that a [LeaseLock] is held. It matches [ErrNotAcquired].
type HeldError struct {
	// Left is how long it may be held at most unless it is renewed.
	Left time.Duration
	// Data is what the holder said with WithData.
	Data []byte
}

// Error names the time left.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%v; it may be held for %v more", ErrNotAcquired, e.Left)
}

// Unwrap returns [ErrNotAcquired].
func (e *HeldError) Unwrap() error { return ErrNotAcquired }

// Acquire waits until the lock is held, as [Mutex.Acquire] does.
func (l *LeaseLock) Acquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for others. The error is a [*HeldError] if
// somebody holds the lock, and [ErrNotAcquired] if others wait for it already.
func (l *LeaseLock) TryAcquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, true) }

func (l *LeaseLock) acquireHeld(ctx context.Context, try bool) (Held, error) {
	return held(l.acquire(ctx, try))
}

func (l *LeaseLock) acquire(ctx context.Context, try bool) (*Lease, error) {
	if l.lease < time.Millisecond {
		return nil, l.line.failure(fmt.Errorf("a lease of %v", l.lease))
	}
	return l.owners.acquire(ctx, func() (*grant, error) {
		return repeat(ctx, l.line.cfg.retry, l.line.failure, func() (*grant, error) { return l.attempt(ctx, try) })
	})
}

// attempt waits to be first in line, then for the holder.
func (l *LeaseLock) attempt(ctx context.Context, try bool) (*grant, error) {
	turn, err := l.line.acquire(ctx, wish{kind: exclusive, rank: first, try: try})
	if err != nil {
		return nil, err
	}
	session, err := turn.session(ctx)
	if err != nil {
		return nil, err
	}
	g, err := l.succeed(ctx, session, turn, try)
	// When the lock has been taken the place in line went in the same transaction:
	// then, unless that is not known, this asks nothing of the server.
	tidy(ctx, turn)
	if err != nil {
		return nil, l.line.failure(err)
	}
	return g, nil
}

// succeed waits for the holder's end and takes the lock, while turn holds the
// first place.
func (l *LeaseLock) succeed(ctx context.Context, s recipes.Session, turn *grant, try bool) (*grant, error) {
	for {
		if err := turn.state(); err != nil {
			return nil, fmt.Errorf("%w: %w", errVanished, err)
		}
		name, err := l.current(ctx, s)
		if err != nil {
			return nil, err
		}
		if name != "" {
			if err := l.outlast(ctx, s, name, turn, try); err != nil {
				return nil, err
			}
			continue
		}
		g, err := l.take(ctx, s, turn)
		if g != nil || err != nil {
			return g, err
		}
	}
}

// current returns the name of the holder's znode.
func (l *LeaseLock) current(ctx context.Context, s recipes.Session) (string, error) {
	names, _, err := s.Children(ctx, l.holder.dir)
	if errors.Is(err, client.ErrNoNode) {
		return "", recipes.EnsureContainers(ctx, s, l.holder.dir)
	}
	if places := l.holder.infixes.line(names); len(places) > 0 {
		return places[0].name, err
	}
	return "", err
}

// outlast waits until the holder's znode has gone, and deletes it when it was seen
// to be there for a lease without a renewal.
func (l *LeaseLock) outlast(ctx context.Context, s recipes.Session, name string, turn *grant, try bool) error {
	path := recipes.Join(l.holder.dir, name)
	lease, err := leaseOf(name)
	if err != nil {
		return err
	}
	seen, since := int32(-1), time.Time{}
	for {
		data, stat, w, err := s.GetW(ctx, path)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat.Version != seen {
			seen, since = stat.Version, time.Now() // not before the answer came: it was renewed before that
		}
		left := lease - time.Since(since)
		switch {
		case left <= 0:
			recipes.Drop(ctx, w)
			// Its time is over whoever says so: that needs no place in line.
			err := s.Delete(ctx, path, seen)
			if err != nil && !errors.Is(err, client.ErrBadVersion) && !errors.Is(err, client.ErrNoNode) && !recipes.Again(ctx, err) {
				return err
			}
			// The server may be behind the leader, who knows of a renewal.
			if err := s.Sync(ctx, path); err != nil {
				return err
			}
		case try:
			recipes.Drop(ctx, w)
			return &HeldError{Left: left, Data: data}
		default:
			if err := l.awaitChange(ctx, w, turn, left); err != nil {
				return err
			}
		}
	}
}

func (l *LeaseLock) stillFirst(ctx context.Context, s recipes.Session, turn *grant) (bool, error) {
	_, there, err := s.Exists(ctx, turn.path)
	return there, err
}

// awaitChange waits for the holder's znode to change, or for the lease to run out.
func (l *LeaseLock) awaitChange(ctx context.Context, w recipes.Watch, turn *grant, left time.Duration) error {
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case _, ok := <-w.Events():
		if !ok {
			return client.ErrSessionExpired
		}
		return nil
	case <-t.C:
		recipes.Drop(ctx, w)
		return nil
	case <-turn.done:
		recipes.Drop(ctx, w)
		return errVanished
	case <-ctx.Done():
		recipes.Drop(ctx, w)
		return context.Cause(ctx)
	}
}

// take makes the first in line the holder: its place goes and its znode comes in
// one transaction, so nobody can be holder who was not first. Without error and
// without a grant somebody else was faster, or it is not known.
func (l *LeaseLock) take(ctx context.Context, s recipes.Session, turn *grant) (*grant, error) {
	mark := recipes.NewUUID() + "-"
	name := mark + strconv.FormatInt((l.lease+time.Millisecond-1).Milliseconds(), 10) + holderInfix
	sent := time.Now()
	err := s.Multi(ctx,
		recipes.Op{Kind: recipes.OpDelete, Path: turn.path, Version: client.AnyVersion},
		recipes.Op{
			Kind: recipes.OpCreate, Path: recipes.Join(l.holder.dir, name), Data: l.holder.cfg.data,
			Mode: recipes.PersistentSequential, ACL: l.holder.cfg.acl,
		})
	switch {
	case err == nil, errors.Is(err, client.ErrUnknownOutcome):
	case errors.Is(err, client.ErrNoNode):
		if there, eerr := l.stillFirst(ctx, s, turn); eerr != nil || !there {
			return nil, errors.Join(errVanished, eerr)
		}
		return nil, nil //nolint:nilnil // the directory has gone: create it again
	default:
		return nil, err
	}
	t := &tenancy{conn: l.line.conn, dir: l.holder.dir, mark: mark, lease: l.lease, renew: l.renew, data: l.holder.cfg.data}
	if err == nil {
		turn.gone = true
		t.known = s.ID()
	}
	if err != nil && ctx.Err() != nil {
		go t.remove()
		return nil, err
	}
	return t.begin(ctx, sent)
}

// Participants returns the holder, if any, and then those who wait.
func (l *LeaseLock) Participants(ctx context.Context) ([]Participant, error) {
	holders, err := l.holder.participants(ctx, 0)
	if err != nil {
		return nil, err
	}
	waiters, err := l.line.participants(ctx, 0)
	return slices.Concat(holders, waiters), err
}

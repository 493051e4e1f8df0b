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
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// DefaultLease is how long a [LeaseLock] lasts from one renewal to the next.
const DefaultLease = 30 * time.Second

// LeaseLock is a lock that lasts for a fixed time, like Redisson's. It outlives the session
// and the connection of its holder, and ends at a known time if the holder dies. It is
// fair, and reentrant for an [Owner]. All methods are safe for concurrent use.
//
// By default, a LeaseLock has a lease of [DefaultLease], which it renews every third of
// that time while the process lives and reaches a server. If the process can't reach a
// server, the Lease ends before any other client can hold the lock. With [WithLease], we
// never renew the lock.
//
// # How it works
//
// The holder has a persistent znode. We don't compare the clocks of different machines: a
// waiter measures with its own monotonic clock how long the znode has existed without a
// renewal since the waiter first saw it, and may delete the znode after the time that the
// znode's name states. The holder counts from before it sent the request that created or
// renewed the znode, so it always sees the end first. It also stops a twentieth earlier, in
// case clocks run at different speeds. The lock needs neither TTL znodes nor synchronized
// clocks.
//
// [Revoke] reaches a holder at its next renewal, i.e. never if the holder uses WithLease.
//
// The disadvantage is that the next client waits for a whole lease after a holder has died,
// whereas a [Mutex] is free as soon as the session has ended.
type LeaseLock struct {
	line   line // the waiters
	holder line // the holder, if any
	lease  time.Duration
	renew  bool
	owners owners
}

// holderInfix is part of the name of the holder's znode: a mark, the length of its lease in
// milliseconds, holderInfix, and the number. We put the length into the name because
// SetData and Revoke can replace the data.
const holderInfix = "ms-holder-"

// leaseOf returns the length of the lease that is in the name of a holder's znode.
func leaseOf(name string) (time.Duration, error) {
	i := strings.LastIndex(name, holderInfix)
	millis, err := strconv.ParseInt(name[strings.LastIndexByte(name[:i], '-')+1:i], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the holder's znode %s: %w", name, err)
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// LeaseOption configures a [LeaseLock].
type LeaseOption func(*LeaseLock)

// WithLease sets how long the lock lasts after Acquire. It is not renewed.
func WithLease(d time.Duration) LeaseOption {
	return func(l *LeaseLock) { l.lease, l.renew = d, false }
}

// WithWatchdog sets how long the lock lasts from one renewal to the next. We renew it every
// third of that time.
func WithWatchdog(d time.Duration) LeaseOption {
	return func(l *LeaseLock) { l.lease, l.renew = d, true }
}

// WithOptions sets the options that all locks have in common. A loss policy has no
// effect, because a LeaseLock depends on the lease and not on the session.
func WithOptions(opts ...Option) LeaseOption {
	return func(l *LeaseLock) { l.line.cfg = newConfig(opts) }
}

// NewLeaseLock returns the lease lock at path, which is a directory for its znodes.
// The directory need not exist.
func NewLeaseLock(conn recipes.Conn, path string, opts ...LeaseOption) *LeaseLock {
	l := &LeaseLock{
		line:   line{conn: conn, dir: recipe.Join(path, "waiters"), infixes: infixes{exclusive: curatorLayout.mutex}, cfg: newConfig(nil)},
		holder: line{conn: conn, dir: recipe.Join(path, "holder"), infixes: infixes{leases: holderInfix}},
		lease:  DefaultLease, renew: true,
	}
	for _, o := range opts {
		o(l)
	}
	l.holder.cfg = l.line.cfg
	l.line.cfg.data = nil
	return l
}

// HeldError means that a [LeaseLock] is held. It matches [ErrNotAcquired].
type HeldError struct {
	// Left is how long the lock can still be held without a renewal.
	Left time.Duration
	// Data is the data that the holder set with WithData.
	Data []byte
}

// Error includes the time left.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%v; it may be held for %v more", ErrNotAcquired, e.Left)
}

// Unwrap returns [ErrNotAcquired].
func (e *HeldError) Unwrap() error { return ErrNotAcquired }

// Acquire waits until the lock is held, like [Mutex.Acquire].
func (l *LeaseLock) Acquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for other clients. The error is a [*HeldError] if
// another client holds the lock, and [ErrNotAcquired] if others are already waiting for it.
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

// attempt waits to be first in line, then for the holder to finish.
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
	// If we acquired the lock, the same transaction deleted our place in line, so tidy sends
	// no request unless the outcome is unknown.
	tidy(ctx, turn)
	if err != nil {
		return nil, l.line.failure(err)
	}
	return g, nil
}

// succeed waits until the holder has finished and acquires the lock, while turn is first in
// line.
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

// outlast waits until the holder's znode is gone. It deletes the znode after it has
// existed for a whole lease without a renewal.
func (l *LeaseLock) outlast(ctx context.Context, s recipes.Session, name string, turn *grant, try bool) error {
	path := recipe.Join(l.holder.dir, name)
	lease, err := leaseOf(name)
	if err != nil {
		return err
	}
	var (
		seen  int64     // zxid of the last change that was read, or 0 before the first read
		since time.Time // when it was first read
	)
	for {
		data, stat, w, err := s.GetW(ctx, path)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat.Mzxid != seen {
			seen, since = stat.Mzxid, time.Now() // we read the clock after the reply: the renewal was earlier
		}
		left := lease - time.Since(since)
		switch {
		case left <= 0:
			recipe.Drop(ctx, w)
			if err := expire(ctx, s, path, stat); err != nil {
				return err
			}
		case try:
			recipe.Drop(ctx, w)
			return &HeldError{Left: left, Data: data}
		default:
			if err := l.awaitChange(ctx, w, turn, left); err != nil {
				return err
			}
		}
	}
}

// expire deletes a holder's znode after its lease has run out, which any client may do
// without a place in line. It does nothing if the holder has renewed the znode since we
// read stat.
//
// A delete at version -1 is unconditional, so it would also delete a znode that was
// renewed. At that version we write the znode instead, and the next call, a lease later,
// deletes it at its new version.
func expire(ctx context.Context, s recipes.Session, path string, stat client.Stat) error {
	var err error
	if stat.Version == client.AnyVersion {
		err = advance(ctx, s, path, stat)
	} else {
		err = s.Delete(ctx, path, stat.Version)
	}
	if err != nil && !errors.Is(err, client.ErrBadVersion) && !errors.Is(err, client.ErrNoNode) && !recipes.Again(ctx, err) {
		return err
	}
	// Our server may lag behind the leader, which may have seen a renewal.
	return s.Sync(ctx, path)
}

// advance writes a znode's data, unchanged, if the znode has not changed since we read
// stat.
func advance(ctx context.Context, s recipes.Session, path string, stat client.Stat) error {
	if err := s.Sync(ctx, path); err != nil {
		return err
	}
	data, now, err := s.Get(ctx, path)
	if err != nil || now.Mzxid != stat.Mzxid {
		return err
	}
	_, err = s.Set(ctx, path, data, client.AnyVersion)
	return err
}

func (l *LeaseLock) stillFirst(ctx context.Context, s recipes.Session, turn *grant) (bool, error) {
	_, there, err := s.Exists(ctx, turn.path)
	return there, err
}

// awaitChange waits until the holder's znode changes or the lease runs out.
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
		recipe.Drop(ctx, w)
		return nil
	case <-turn.done:
		recipe.Drop(ctx, w)
		return errVanished
	case <-ctx.Done():
		recipe.Drop(ctx, w)
		return context.Cause(ctx)
	}
}

// take makes the first in line the holder. We delete its place and create the holder's
// znode in one transaction, so that only the first in line can become the holder. take
// returns neither a grant nor an error if the holder's directory is missing.
func (l *LeaseLock) take(ctx context.Context, s recipes.Session, turn *grant) (*grant, error) {
	mark := recipe.NewUUID() + "-"
	name := mark + strconv.FormatInt((l.lease+time.Millisecond-1).Milliseconds(), 10) + holderInfix
	sent := time.Now()
	err := s.Multi(ctx,
		recipes.Op{Kind: recipes.OpDelete, Path: turn.path, Version: client.AnyVersion},
		recipes.Op{
			Kind: recipes.OpCreate, Path: recipe.Join(l.holder.dir, name), Data: l.holder.cfg.data,
			Mode: recipes.PersistentSequential, ACL: l.holder.cfg.acl,
		})
	switch {
	case err == nil, errors.Is(err, client.ErrUnknownOutcome):
	case errors.Is(err, client.ErrNoNode):
		if there, eerr := l.stillFirst(ctx, s, turn); eerr != nil || !there {
			return nil, errors.Join(errVanished, eerr)
		}
		return nil, nil //nolint:nilnil // the directory is gone: create it again
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

// Participants returns the holder, if any, and then the waiters.
func (l *LeaseLock) Participants(ctx context.Context) ([]Participant, error) {
	holders, err := l.holder.participants(ctx, 0)
	if err != nil {
		return nil, err
	}
	waiters, err := l.line.participants(ctx, 0)
	return slices.Concat(holders, waiters), err
}

package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// Token is a fencing token: the zxid that created the lock's znode. A later holder of
// the lock has a greater token, also after an election, a restore or a recovery of
// the ensemble.
type Token int64

// Lease is a held lock. It is safe for concurrent use.
//
// A lease ends when it is released and when the lock may be lost. In both cases we close
// Done, before any other client can hold the lock (see [recipes.LossPolicy]), and Err
// returns the reason. The holder should always call Release: if the session continues after
// all, the lock's znode stays and blocks other clients until the holder has finished.
type Lease struct {
	g    *grant
	once sync.Once
}

// Done returns a channel that is closed when the lease has ended.
func (l *Lease) Done() <-chan struct{} { return l.g.done }

// Err returns nil while the lock is held, and otherwise an error that matches [ErrReleased]
// or [ErrLost]. It checks the clock, so the result is correct even if the process was
// suspended and has just resumed, and Done isn't closed yet.
func (l *Lease) Err() error { return l.g.state() }

// Token returns the fencing token. A data store should remember the greatest token it has
// seen and refuse smaller ones. This makes it safe from a holder that doesn't know yet that
// it has lost the lock.
func (l *Lease) Token() Token { return l.g.token }

// Path returns the path of the lock's znode.
func (l *Lease) Path() string { return l.g.path }

// Deadline returns the time at which the lease ends unless a server replies before, or the
// zero Time if it is unknown.
func (l *Lease) Deadline() time.Time { return l.g.deadline() }

// Context returns a context that ends with ctx and with the lease. If the lease ends first,
// the context's cause is the lease's Err. The caller should call cancel to free its
// resources.
func (l *Lease) Context(ctx context.Context) (held context.Context, cancel context.CancelFunc) {
	held, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.Done():
			stop(l.Err())
		case <-held.Done():
		}
	}()
	return held, func() { stop(context.Canceled) }
}

// RevokeRequested returns a channel that is closed when a client has asked for the
// lock with [Revoke]. The holder decides whether to release it.
func (l *Lease) RevokeRequested() <-chan struct{} { return l.g.revoke }

// Multi executes operations in one transaction if the lock is held at that moment. We let
// the server check that. If the lock is not held, the transaction has no effect, and the
// error matches [ErrLost] or [ErrReleased].
func (l *Lease) Multi(ctx context.Context, ops ...recipes.Op) error {
	if err := l.Err(); err != nil {
		return err
	}
	session, err := l.g.session(ctx)
	if err != nil {
		return err
	}
	guarded := append([]recipes.Op{{Kind: recipes.OpCheck, Path: l.g.path, Version: client.AnyVersion}}, ops...)
	err = session.Multi(ctx, guarded...)
	if errors.Is(err, client.ErrNoNode) {
		if _, there, eerr := session.Exists(ctx, l.g.path); eerr == nil && !there {
			l.g.lose(errVanished)
		}
	}
	return l.failure(err)
}

// failure adds to the error of a request why the lease has ended.
func (l *Lease) failure(err error) error {
	if lost := l.Err(); err != nil && lost != nil {
		return fmt.Errorf("%w (%w)", lost, err)
	}
	return err
}

// Set is Multi with a single change of a znode's data.
func (l *Lease) Set(ctx context.Context, path string, data []byte, version int32) error {
	return l.Multi(ctx, recipes.Op{Kind: recipes.OpSet, Path: path, Data: data, Version: version})
}

// SetData replaces the data that WithData put into the lock's own znode, if the lock is
// held. It doesn't hide a [Revoke] that has just replaced the data.
func (l *Lease) SetData(ctx context.Context, data []byte) error {
	for {
		if err := l.Err(); err != nil {
			return err
		}
		old, err := l.read(ctx)
		if err != nil {
			return l.failure(err)
		}
		if err = l.Set(ctx, l.Path(), data, old.Version); !errors.Is(err, client.ErrBadVersion) {
			return err
		}
	}
}

// read reads the lock's own znode for a write, and notifies the holder if another client
// has asked for the lock. If the znode is gone, we notice that when we write.
func (l *Lease) read(ctx context.Context) (client.Stat, error) {
	s, err := l.g.session(ctx)
	if err != nil {
		return client.Stat{}, err
	}
	data, stat, err := s.Get(ctx, l.Path())
	if errors.Is(err, client.ErrNoNode) {
		return stat, nil
	}
	if string(data) == revoked {
		l.g.askedToRevoke()
	}
	return stat, err
}

// Release releases the lock. It returns nil if the lock was held until then,
// [ErrReleased] if this lease was released before, and an error that matches
// [ErrLost] if the lock had been lost.
//
// When Release returns nil or ErrLost, the lock's znode is gone. If ctx ends first or the
// connection breaks, Release returns that error, and we delete the znode in the background.
// A reentrant lock is free when its last lease is released.
func (l *Lease) Release(ctx context.Context) error {
	err := ErrReleased
	l.once.Do(func() { err = l.g.release(ctx) })
	return err
}

package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// core is the state that all views of a Client share. It has two long-lived goroutines:
// connector.run connects, and keep watches the clock. Apart from mu, only subscriptions have
// locks, which are acquired while mu is held.
type core struct {
	cfg   config
	log   *slog.Logger
	calls sync.Pool
	wg    sync.WaitGroup
	ctx   context.Context // canceled by Close
	stop  context.CancelFunc
	wake  chan struct{} // capacity 1: wakes keep

	mu        sync.Mutex
	connector connector
	failures  failures
	link      *link // nil: not connected
	session   session
	states    states
	watches   watchTable
	leases    leases
	auths     []auth
	openACL   []ACL // never changed
	end       ending
}

// ending is whether the Client ends, and why no operation can succeed any more.
type ending struct {
	closing bool  // Close was called
	err     error // if set, every operation returns it
	code    Code
}

// failure returns the error of an operation after the end, nil before it.
func (e *ending) failure(op, path string) error {
	if e.err == nil {
		return nil
	}
	return &Error{Op: op, Path: path, Code: e.code, Err: e.err}
}

func newCore(cfg config, addrs []string) *core {
	c := &core{
		cfg:     cfg,
		log:     cfg.logger,
		calls:   newCallPool(),
		wake:    make(chan struct{}, 1),
		states:  states{change: make(chan struct{}), subscribers: map[*StateSubscription]struct{}{}},
		leases:  map[*Lease]struct{}{},
		auths:   cfg.auths,
		openACL: proto.OpenACL(),
		session: session{Session: cfg.session},
	}
	c.connector = connector{core: c, hosts: newHosts(&c.cfg, addrs)}
	c.failures.seed = addrs
	c.watches = watchTable{core: c, paths: map[string]*watchedPath{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	if c.session.ID != 0 {
		if c.session.Timeout <= 0 {
			c.session.Timeout = cfg.timeout
		}
		c.session.contacted = time.Now()
	}
	return c
}

func (c *core) start() {
	c.wg.Go(c.connector.run)
	c.wg.Go(c.keep)
}

// poke wakes keep so that it checks the deadlines again.
func (c *core) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// keep sends pings and handles timeouts: a silent server, the end of the session, and
// the end of leases.
func (c *core) keep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		next := c.tick(time.Now())
		c.mu.Unlock()
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
	}
}

// tick handles expired deadlines and returns the time until the next one. The caller holds
// c.mu.
func (c *core) tick(now time.Time) time.Duration {
	next := now.Add(time.Hour)
	at := func(t time.Time) bool {
		if !t.After(now) {
			return true
		}
		if t.Before(next) {
			next = t
		}
		return false
	}
	if c.session.ID == 0 {
		return time.Hour
	}
	timeout := c.session.Timeout
	if len(c.leases) > 0 && at(c.session.leaseEnd(c.cfg.lease)) {
		c.leases.endAll(ErrSessionExpired)
	}
	if at(c.session.deadline()) {
		c.lose(fmt.Errorf("no server answered within the session timeout of %v", timeout))
		return 0
	}
	if l := c.link; l != nil {
		if at(l.times.received.Add(timeout * 2 / 3)) {
			l.fail(fmt.Errorf("the server %s has been silent for %v", l.addr, now.Sub(l.times.received).Round(time.Millisecond)))
			return next.Sub(now) // the session's end is still to come
		}
		c.liveness(l, now, at)
	}
	return next.Sub(now)
}

// liveness keeps the session alive. We send a ping a third of the timeout after the last
// request, as ZooKeeper's Java client does. If there are leases, we also send a sync a
// third of the timeout after the last request that the leader confirmed.
func (c *core) liveness(l *link, now time.Time, at func(time.Time) bool) {
	third := c.session.Timeout / 3
	if len(c.leases) > 0 && !c.cfg.lease.Unconfirmed {
		due := later(l.times.syncAt, c.session.confirmed).Add(third)
		if at(due) {
			l.times.syncAt = now
			k := c.calls.Get().(*call)
			k.op, k.path, k.abandoned = proto.OpSync, "/", true
			l.push(k)
			l.out.kick()
			at(now.Add(third))
		}
	}
	// A request we sent may stay unanswered for a long time. The ping tells us whether the
	// server is still alive.
	if at(later(l.times.sent, c.session.contacted).Add(third)) || at(later(l.times.pingTried, c.session.contacted).Add(third)) {
		l.times.pingTried = now
		l.ping(now)
		at(now.Add(third))
	}
}

// close implements Close.
func (c *core) close() error {
	c.mu.Lock()
	if c.end.closing {
		c.mu.Unlock()
		c.wg.Wait()
		return nil
	}
	c.end.closing = true
	if c.end.err == nil {
		c.end.err = ErrClosed
	}
	id, wait := c.session.ID, c.session.Timeout/3
	var k *call
	l := c.link
	if l != nil {
		k = c.calls.Get().(*call)
		k.op = proto.OpCloseSession
		l.push(k)
		l.out.kick()
	}
	c.states.changed()
	c.mu.Unlock()
	var err error
	if k != nil {
		err = c.awaitEnd(k, wait)
	} else if id != 0 {
		err = fmt.Errorf("client: close: no connection, the session %s ends after its timeout", sessionText(id))
	}
	c.stop()
	if l != nil {
		l.fail(ErrClosed)
	}
	c.wg.Wait()
	c.finish()
	return err
}

// awaitEnd waits for the reply to closeSession.
func (c *core) awaitEnd(k *call, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-k.ready:
	case <-timer.C:
		if c.abandon(k) {
			return errors.New("client: close: no answer in time, the session ends after its timeout")
		}
		<-k.ready
	}
	defer c.free(k)
	if b, ok := k.err.(*brokenError); ok && b.code != ErrSessionExpired {
		return fmt.Errorf("client: close: the session ends after its timeout: %w", k.failure())
	}
	return nil
}

// finish ends leases, watches and subscriptions after the Client's goroutines have
// returned.
func (c *core) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases.endAll(ErrClosed)
	c.watches.endAll(ErrClosed)
	c.states.finish(StateChange{State: StateClosed, Session: c.session.ID})
}

// sessionText formats an id the way the servers' logs do.
func sessionText(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

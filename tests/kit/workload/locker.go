package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// locker is a client that acquires and releases locks by ZooKeeper's recipe: each client creates an
// ephemeral sequential znode in the lock's directory; the lowest holds the lock, and every other
// client watches the znode before its own.
type locker struct {
	*session
	c        *conn
	lock     string // the directory of the queue
	attempts int
	prefix   string // of the znode that the client is creating or has created; "": none
	node     string // this client's znode, "" if not known to exist
	czxid    int64
	owner    int64 // session of the attempt
	holding  bool  // from the reply that said so until the release begins or the session is lost
	released bool  // the release has begun
	hold     *history.Hold
	changed  chan struct{} // receives a value when an event arrives
}

func (w *world) newLocker(number uint64) *locker {
	l := &locker{session: newSession(w, w.rand(2, number)), changed: make(chan struct{}, 1)}
	l.onEvent = func(*history.Event) {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
	return l
}

// run acquires locks until ctx is done.
func (l *locker) run(ctx context.Context) {
	for ctx.Err() == nil {
		if l.c = l.connect(ctx); l.c == nil {
			return
		}
		if l.id != l.owner {
			l.forget()
		}
		if l.holding {
			l.believe()
		}
		why := l.use(ctx)
		if ctx.Err() != nil {
			why = l.farewell()
		}
		l.c.hangUp(why)
		l.doubt(l.c.ended, l.c.why)
		if why == "session abandoned" {
			l.abandon()
		}
	}
}

// forget starts again after the session has ended and its znode is deleted.
func (l *locker) forget() {
	l.prefix, l.node, l.holding, l.released, l.owner = "", "", false, false, l.id
}

// use works on one connection. It returns when that has ended, the client decides
// to leave it, or ctx is done.
func (l *locker) use(ctx context.Context) string {
	for {
		var ok bool
		switch {
		case l.released:
			ok = l.remove()
		case l.holding:
			if why := l.critical(ctx); why != "" {
				return why
			}
			ok = true
		case l.prefix == "":
			if !pause(ctx, l.about(l.w.Think), l.c.quit) {
				return "no reply"
			}
			ok = l.enqueue()
		default:
			ok = l.wait(ctx)
		}
		if !ok || ctx.Err() != nil {
			return "no reply"
		}
	}
}

// enqueue creates the znode. It returns false if the connection has ended.
func (l *locker) enqueue() bool {
	l.attempts++
	l.lock = l.w.lock(l.rnd.IntN(l.w.Locks))
	l.prefix = fmt.Sprintf("%s/c%d.%d-", l.lock, l.client, l.attempts)
	o := l.c.do(&history.Op{Op: proto.OpCreate2, Path: l.prefix, Value: fmt.Sprintf("%d.%d", l.client, l.attempts), Mode: proto.ModeEphemeralSequential})
	if o.Done() {
		l.node, l.czxid = o.Created, o.Stat.Czxid
	}
	return o.Answered()
}

// wait reads the queue, and waits until the znode before its own is gone if there
// is one.
func (l *locker) wait(ctx context.Context) bool {
	o := l.c.do(&history.Op{Op: proto.OpGetChildren2, Path: l.lock})
	if !o.Done() {
		return o.Answered()
	}
	queue := o.Children
	slices.SortFunc(queue, func(a, b string) int { return strings.Compare(turn(a), turn(b)) })
	mine := slices.IndexFunc(queue, func(name string) bool { return strings.HasPrefix(l.lock+"/"+name, l.prefix) })
	if mine < 0 { // the request was never executed, and will not be: try again
		l.prefix, l.node = "", ""
		return true
	}
	if l.node == "" {
		return l.find(l.lock + "/" + queue[mine])
	}
	if mine == 0 {
		l.holding = true
		l.believe()
		return true
	}
	o = l.c.do(&history.Op{Op: proto.OpExists, Path: l.lock + "/" + queue[mine-1], Watch: true})
	if !o.Done() {
		return o.Answered()
	}
	select {
	case <-l.changed:
	case <-ctx.Done():
	case <-l.c.quit:
		return false
	}
	return true
}

// turn returns the number at the end of a sequential znode's name.
func turn(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// find reads the stat of a znode that turned out to be this client's.
func (l *locker) find(path string) bool {
	o := l.c.do(&history.Op{Op: proto.OpExists, Path: path})
	if o.Done() {
		l.node, l.czxid = path, o.Stat.Czxid
	}
	return o.Answered()
}

// believe begins a Hold.
func (l *locker) believe() {
	l.hold = &history.Hold{Client: l.client, Session: l.id, Server: l.c.server, Conn: l.c.id, Lock: l.lock, Node: l.node, Czxid: l.czxid, From: l.w.rec.Now()}
}

// doubt ends the Hold.
func (l *locker) doubt(at history.Time, why string) {
	if l.hold == nil {
		return
	}
	l.hold.To, l.hold.Why = max(at, l.hold.From), why
	l.w.rec.Hold(l.hold)
	l.hold = nil
}

// critical holds the lock for a while, like a client that checks now and then
// whether it still holds the lock, and begins the release. It returns a reason to
// leave the connection.
func (l *locker) critical(ctx context.Context) string {
	hold := l.about(l.w.Hold)
	if l.w.LongHolds > 0 && l.rnd.IntN(100) < l.w.LongHolds {
		hold += 2 * l.w.Timeout
	}
	end := time.Now().Add(hold)
	for time.Now().Before(end) {
		if !pause(ctx, l.w.Hold/4, l.c.quit) {
			return "no reply"
		}
		o := l.c.do(&history.Op{Op: proto.OpGetData, Path: l.node})
		if !o.Answered() {
			return "no reply"
		}
		if o.Code == proto.ErrNoNode { // the checkers will report it
			break
		}
		if !l.w.Calm && hold < l.w.Timeout && l.chance(10) {
			return l.leave()
		}
	}
	l.doubt(l.w.rec.Now(), "release")
	l.holding, l.released = false, true
	return ""
}

// leave makes the holder leave without releasing the lock, and returns the
// reason.
func (l *locker) leave() string {
	switch l.rnd.IntN(3) {
	case 0:
		return "session abandoned"
	case 1:
		return l.closeSession()
	}
	return "the client moves"
}

// closeSession ends the session, and so the client's holds.
func (l *locker) closeSession() string {
	l.doubt(l.w.rec.Now(), "session closed")
	l.holding = false
	p := l.c.send(&history.Op{Op: proto.OpCloseSession})
	select {
	case <-p.done:
	case <-time.After(l.c.timeout / 3):
	}
	l.reset()
	return "session closed"
}

// farewell ends the run for this client: half of the clients close their session.
func (l *locker) farewell() string {
	if l.rnd.IntN(2) == 0 {
		return l.closeSession()
	}
	return "the run is over"
}

// remove deletes the znode.
func (l *locker) remove() bool {
	o := l.c.do(&history.Op{Op: proto.OpDelete, Path: l.node, Version: -1})
	if o.Answered() {
		l.prefix, l.node, l.released = "", "", false
	}
	return o.Answered()
}

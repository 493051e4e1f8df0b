package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// session is the state that a client carries from one connection to the next.
type session struct {
	w      *world
	client int
	rnd    *rand.Rand // used only by the client's own goroutine
	linear bool       // asks for linearizable reads

	id     int64 // 0: none
	passwd []byte

	mu      sync.Mutex // connections report frames
	zxid    int64      // newest zxid in a reply
	watches [watchKinds]map[string]bool
	onEvent func(e *history.Event) // called on the connection's goroutine; nil: not called
}

// These are the kinds of watches that a client remembers.
const (
	watchData = iota
	watchExist
	watchChild
	watchPersistent
	watchRecursive
	watchKinds
)

func newSession(w *world, rnd *rand.Rand) *session {
	s := &session{w: w, client: w.rec.NewClient(), rnd: rnd}
	s.reset()
	return s
}

// reset forgets the session.
func (s *session) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.passwd, s.zxid = 0, make([]byte, proto.PasswordSize), 0
	for i := range s.watches {
		s.watches[i] = make(map[string]bool)
	}
}

func (s *session) lastZxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.zxid
}

// replied updates the watches and the zxid from a reply.
func (s *session) replied(o *history.Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Zxid > 0 && o.Op != proto.OpPing {
		s.zxid = max(s.zxid, o.Zxid)
	}
	switch {
	case o.Op == proto.OpAddWatch && o.Code == proto.Ok && proto.AddWatchMode(o.Add) == proto.AddWatchPersistent:
		s.watches[watchPersistent][o.Path] = true
	case o.Op == proto.OpAddWatch && o.Code == proto.Ok:
		s.watches[watchRecursive][o.Path] = true
	case !o.Watch:
	case o.Op == proto.OpExists && o.Code == proto.ErrNoNode:
		s.watches[watchExist][o.Path] = true
	case o.Code != proto.Ok:
	case o.Op == proto.OpGetChildren2:
		s.watches[watchChild][o.Path] = true
	default:
		s.watches[watchData][o.Path] = true
	}
}

// notified forgets the one-shot watches that an event has used up.
func (s *session) notified(e *history.Event) {
	s.mu.Lock()
	if e.Type != proto.EventNodeChildrenChanged {
		delete(s.watches[watchData], e.Path)
		delete(s.watches[watchExist], e.Path)
	}
	if e.Type == proto.EventNodeChildrenChanged || e.Type == proto.EventNodeDeleted {
		delete(s.watches[watchChild], e.Path)
	}
	tell := s.onEvent
	s.mu.Unlock()
	if tell != nil {
		tell(e)
	}
}

// setWatches returns the request that sets all watches again, or nil if there are
// none.
func (s *session) setWatches() *history.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lists [watchKinds][]string
	n := 0
	for i, set := range s.watches {
		for path := range set {
			lists[i] = append(lists[i], path)
		}
		slices.Sort(lists[i])
		n += len(set)
	}
	if n == 0 {
		return nil
	}
	return &history.Op{Op: proto.OpSetWatches2, Watches: &history.Watches{Relative: s.zxid, Data: lists[watchData], Exist: lists[watchExist],
		Child: lists[watchChild], Persistent: lists[watchPersistent], Recursive: lists[watchRecursive]}}
}

// breath is the mean time that a client waits before it connects again.
const breath = 10 * time.Millisecond

// connect tries servers until one attaches the session, begins a new session if
// the old one is over, and sets the watches again. It returns nil if ctx is done.
func (s *session) connect(ctx context.Context) *conn {
	for s.id == 0 || pause(ctx, s.about(breath), nil) {
		server := s.w.Servers[s.rnd.IntN(len(s.w.Servers))]
		c, err := s.w.dial(ctx, s, server)
		if err == nil {
			c.start()
			if s.linear {
				c.send(&history.Op{Op: proto.OpAuth, Value: linearizable})
			}
			if q := s.setWatches(); q != nil {
				c.send(q)
			}
			return c
		}
		if errors.Is(err, errExpired) {
			s.reset()
			continue
		}
		if !pause(ctx, s.about(10*breath), nil) {
			break
		}
	}
	return nil
}

// abandon leaves the session to expire.
func (s *session) abandon() {
	s.w.rec.Session(&history.Session{Client: s.client, Session: s.id, Change: history.Abandoned, At: s.w.rec.Now()})
	s.reset()
}

// about returns a random duration between 0 and twice d.
func (s *session) about(d time.Duration) time.Duration {
	return time.Duration(s.rnd.Int64N(int64(2*d) + 1))
}

// chance returns true n times in 1000.
func (s *session) chance(n int) bool { return s.rnd.IntN(1000) < n }

// do sends a request and waits until it is answered or will not be.
func (c *conn) do(o *history.Op) *history.Op {
	<-c.send(o).done
	return o
}

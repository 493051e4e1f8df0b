package server

import (
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// fsm is the state of the goroutine that applies the log. No other goroutine uses it.
type fsm struct {
	s *Server

	scratch []byte                    // the reply being built
	event   notification              // the event being delivered
	fired   *tree.Event               // being fired, for allow
	allow   func(*watch.Watcher) bool // made once
	dirty   []*conn                   // connections with output to write, at the latest at the end of the entry
	writer  *poller.Writer
	now     int64 // clock, read once per entry; 0 until then
	sent    int64 // events since the last update of the counters
	replied int64 // replies since then

	eventBytes int64       // of those events
	reads      stats.Tally // reads answered after writes
	writes     stats.Tally
	sizes      stats.ReplySizes
	zxid       int64 // of the transaction being answered
}

// maxScratch bounds the capacity of the scratch reply that is kept.
const maxScratch = 64 << 10

// touch records that c has output.
func (f *fsm) touch(c *conn) {
	if !c.replies.dirty {
		c.replies.dirty = true
		f.dirty = append(f.dirty, c)
	}
}

// Applied implements raftfsm.Handler: events first, then the answer, then the requests
// queued after it.
func (h handler) Applied(a *raftfsm.Applied) {
	s := h.s
	if a.Zxid != 0 {
		s.stats.Commits.Add(1)
		s.fsm.countWrite(a)
		if s.memory != nil {
			s.memory.Wrote(len(a.Body))
		}
	}
	s.fsm.fire(a.Events)
	s.digests.Note(a.Zxid, s.tree)
	if a.Op == proto.OpReconfig && a.Code == proto.Ok {
		s.membersChanged()
	}
	if a.Waiter != nil {
		a.Waiter.Applied(a)
	} else {
		s.fsm.settle(a, nil)
	}
}

// Applied implements raftfsm.Waiter for a client's command.
func (p *pending) Applied(a *raftfsm.Applied) { p.c.s.fsm.settle(a, p) }

// ownWaiter waits for a command that no client proposed.
type ownWaiter struct {
	s    *Server
	done func(*raftfsm.Applied)
}

// Applied implements raftfsm.Waiter.
func (w ownWaiter) Applied(a *raftfsm.Applied) {
	w.s.fsm.settle(a, nil)
	w.done(a)
}

// Waiter returns the Waiter of a command that no client of s proposes. It calls done with
// the outcome.
func (s *Server) Waiter(done func(*raftfsm.Applied)) raftfsm.Waiter { return ownWaiter{s, done} }

// settle carries out the effects of a command on the clients of this server, and answers p.
// p is nil unless a client of this server proposed the command.
func (f *fsm) settle(a *raftfsm.Applied, p *pending) {
	s := f.s
	if s.audit != nil {
		s.record(a, p)
	}
	if a.Op == proto.OpCloseSession && a.Code == proto.Ok {
		s.clients.sessionClosed(a.Session, p)
	}
	switch {
	case a.Kind == raftfsm.KindAttach:
		f.applyAttach(a, p)
	case p != nil:
		f.complete(a, p)
	}
}

// complete answers p, which was in flight, and runs the requests queued after it.
func (f *fsm) complete(a *raftfsm.Applied, p *pending) {
	c := p.c
	if a.Code == proto.ErrSessionMoved {
		c.kill()
		return
	}
	f.scratch = appendWriteReply(f.scratch[:0], a, p, f.s.tree.LastZxid())
	f.zxid = a.Zxid
	f.advance(c, p, a.Op == proto.OpCloseSession)
}

// appendWriteReply appends the reply to p.
func appendWriteReply(out []byte, a *raftfsm.Applied, p *pending, last int64) []byte {
	out, mark := proto.BeginFrame(out)
	h := proto.ReplyHeader{Xid: p.xid, Zxid: a.Zxid, Err: a.Code}
	if a.Zxid == 0 {
		h.Zxid = last
	}
	out = h.Append(out)
	switch {
	case p.op == proto.OpSync && a.Code == proto.Ok:
		out = append(out, p.body...)
	case a.Result != nil:
		out = a.Result.AppendBody(out)
	}
	return proto.EndFrame(out, mark)
}

// advance queues the scratch reply of the head p, and answers the requests after it up
// to the next one in flight.
func (f *fsm) advance(c *conn, p *pending, hangUp bool) {
	s, out := f.s, &c.replies
	f.touch(c)
	s.stats.Queued.Observe(1, int64(out.waiting.Load()))
	reads := int64(0)
	for {
		out.mu.Lock()
		if out.closed {
			out.mu.Unlock()
			s.stats.StaleReplies.Add(1)
			return
		}
		out.queue(f.scratch)
		out.countLate(p, f.clock(), f.zxid)
		out.hangUp = out.hangUp || hangUp
		crowded := out.crowded()
		next := out.pop()
		if next == nil || crowded && !out.crowded() {
			out.wakeReader()
		}
		out.mu.Unlock()
		f.replied++
		f.sizes.Note(len(f.scratch) - proto.LengthSize)
		s.pools.freePending(p)
		if next == nil || next.inFlight || hangUp {
			break
		}
		p = next
		reads++
		q := request{c: c, op: p.op, xid: p.xid, refuse: p.refuse, body: p.body, ids: p.ids, reads: &f.reads}
		f.scratch = q.answer(f.scratch[:0])
		hangUp = q.hangUp
	}
	if reads > 0 {
		s.stats.ReadsAfterWrite.Observe(1, reads)
	}
	if cap(f.scratch) > maxScratch {
		f.scratch = nil
	}
}

// clock returns the approximate time of this log entry.
func (f *fsm) clock() int64 {
	if f.now == 0 {
		f.now = f.s.clock()
	}
	return f.now
}

// fewDirty is the number of connections up to which the applying goroutine writes alone:
// these writes would end before a second goroutine started.
const fewDirty = 8

// helpAnswers is the average number of answers per connection from which the applying
// goroutine leaves writing to the flushers: the clients have sent many more requests, which
// it can execute in the meantime.
const helpAnswers = 4

// BatchDone implements raftfsm.Handler: it writes the replies and events that the entry queued.
func (h handler) BatchDone() {
	h.s.fsm.now = 0
	h.s.fsm.writeAnswers()
}

// writeAnswers counts the queued output and writes it.
func (f *fsm) writeAnswers() {
	s := f.s
	f.reads.Flush()
	f.writes.Flush()
	answers := f.sent + f.replied
	if answers > 0 {
		s.stats.Sent.Add(answers)
		s.stats.CountReplies(&f.sizes)
		s.stats.BytesEvents.Add(f.eventBytes)
		f.sent, f.replied, f.eventBytes = 0, 0, 0
		f.event = notification{}
	}
	if len(f.dirty) == 0 {
		return
	}
	for _, c := range f.dirty {
		c.replies.dirty = false
	}
	if len(f.dirty) <= fewDirty {
		for _, c := range f.dirty {
			c.replies.flushNow(f.writer)
		}
	} else {
		s.flushers.add(f.dirty...)
		if answers < helpAnswers*int64(len(f.dirty)) {
			s.flushers.help(f.writer)
		}
	}
	clear(f.dirty)
	f.dirty = f.dirty[:0]
}

// Lost implements raftfsm.Handler. Whether the proposed commands will be applied is
// unknown, so no client gets an answer for them.
func (h handler) Lost(reason error) {
	h.s.clients.each(func(c *conn) {
		c.replies.mu.Lock()
		inFlight := false
		for p := c.replies.head; p != nil && !inFlight; p = p.next {
			inFlight = p.inFlight
		}
		c.replies.mu.Unlock()
		if inFlight {
			h.s.log.Debug("closing a client with requests in flight", "client", c.nc.RemoteAddr(), "reason", reason)
			c.kill()
		}
	})
}

// Jumped implements raftfsm.Handler.
func (h handler) Jumped() {
	h.s.log.Info("closing all clients: the state was replaced by a snapshot")
	h.s.clients.forgetLost() // the new state has other sessions
	h.s.clients.each((*conn).kill)
}

// handler is the Server as the replicated state sees it. It keeps these methods out of
// the Server's own interface.
type handler struct{ s *Server }

var _ raftfsm.Handler = handler{}

// prepare initializes f as the state of s's applying goroutine.
func (f *fsm) prepare(s *Server) {
	f.s, f.writer, f.writes.Write = s, poller.NewWriter(), true
	f.allow = f.mayRead
}

// mayRead reports whether w's client may receive the event being fired.
func (f *fsm) mayRead(w *watch.Watcher) bool {
	c, ok := w.Sink().(*conn)
	return ok && f.fired.Allows(proto.PermRead, c.session.ids.All())
}

// countWrite counts the changes of a transaction, with the bytes of its request.
func (f *fsm) countWrite(a *raftfsm.Applied) {
	s := f.s
	if a.Kind == raftfsm.KindReconfigDone {
		return // not a client's request: ZooKeeper doesn't count what its leader writes there
	}
	if a.Code == proto.ErrQuotaExceeded {
		if n := s.spaces.Find(stats.NamespaceOf(proto.LeadingPath(a.Body))); n != nil {
			n.OverQuota.Add(1)
		}
		return
	}
	changed := 0
	for i := range a.Events {
		if a.Events[i].Type != proto.EventNodeChildrenChanged {
			changed++
		}
	}
	for i := range a.Events {
		if e := &a.Events[i]; e.Type != proto.EventNodeChildrenChanged {
			s.fsm.writes.Add(&s.spaces, e.Path, max(len(a.Body)/changed, len(e.Path)))
		}
	}
}

package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// fsm is what the goroutine that applies the log keeps between calls. No other
// goroutine uses it.
type fsm struct {
	scratch []byte                    // the reply being built
	event   notification              // the event being delivered
	fired   *tree.Event               // being fired, for allow
	allow   func(*watch.Watcher) bool // made once
	dirty   []*conn                   // connections with output to write, at the latest at the end of the entry
	writer  *rawWriter
	now     int64 // clock, read once per entry; 0 until then
	sent    int64 // events since the last update of the counters
	replied int64 // replies since then

	eventBytes int64 // of those events
	reads      tally // reads answered after writes
	writes     tally
	sizes      replySizes
	zxid       int64 // of the transaction being answered
}

// maxScratch bounds the capacity of the scratch reply that is kept.
const maxScratch = 64 << 10

// touch records that c has output.
func (f *fsm) touch(c *conn) {
	if !c.dirty {
		c.dirty = true
		f.dirty = append(f.dirty, c)
	}
}

// Applied implements raftfsm.Handler: events first, then the answer, then the requests
// queued after it.
func (h handler) Applied(a *raftfsm.Applied) {
	s := h.s
	if a.Zxid != 0 {
		s.stats.commits.Add(1)
		s.countWrite(a)
		if s.memory != nil {
			s.memory.Wrote(len(a.Body))
		}
	}
	s.fire(a.Events)
	s.noteDigest(a.Zxid)
	p, _ := a.Waiter.(*pending)
	if done, ok := a.Waiter.(func(*raftfsm.Applied)); ok {
		defer done(a) // for a command that no client proposed
	}
	if s.audit != nil {
		s.record(a, p)
	}
	if a.Op == proto.OpReconfig && a.Code == proto.Ok {
		s.membersChanged()
	}
	if a.Op == proto.OpCloseSession && a.Code == proto.Ok {
		s.sessionClosed(a.Session, p)
	}
	switch {
	case a.Kind == raftfsm.KindAttach:
		s.applyAttach(a, p)
	case p != nil:
		s.complete(a, p)
	}
}

// complete answers p, which was in flight, and runs the requests queued after it.
func (s *Server) complete(a *raftfsm.Applied, p *pending) {
	c := p.c
	if a.Code == proto.ErrSessionMoved {
		c.kill()
		return
	}
	f := &s.fsm
	f.scratch = appendWriteReply(f.scratch[:0], a, p, s.tree.LastZxid())
	f.zxid = a.Zxid
	s.advance(c, p, a.Op == proto.OpCloseSession)
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
func (s *Server) advance(c *conn, p *pending, hangUp bool) {
	f := &s.fsm
	f.touch(c)
	s.stats.queued.Observe(1, int64(c.waiting.Load()))
	reads := int64(0)
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			s.stats.staleReplies.Add(1)
			return
		}
		c.queue(f.scratch)
		c.countLate(p, f.clock(s), f.zxid)
		c.hangUp = c.hangUp || hangUp
		crowded := c.crowded()
		next := c.pop()
		if next == nil || crowded && !c.crowded() {
			c.wakeReader()
		}
		c.mu.Unlock()
		f.replied++
		f.sizes.note(len(f.scratch) - proto.LengthSize)
		s.freePending(p)
		if next == nil || next.inFlight || hangUp {
			break
		}
		p = next
		reads++
		q := request{c: c, op: p.op, xid: p.xid, refuse: p.refuse, body: p.body, ids: p.ids, reads: &f.reads}
		f.scratch = s.answer(&q, f.scratch[:0])
		hangUp = q.hangUp
	}
	if reads > 0 {
		s.stats.behind.Observe(1, reads)
	}
	if cap(f.scratch) > maxScratch {
		f.scratch = nil
	}
}

// clock returns the approximate time of this log entry.
func (f *fsm) clock(s *Server) int64 {
	if f.now == 0 {
		f.now = s.clock()
	}
	return f.now
}

// fewDirty is the number of connections up to which the applying goroutine writes
// alone: a second goroutine would start later than these writes end.
const fewDirty = 8

// helpAnswers is the average number of answers per connection from which the applying
// goroutine leaves writing to the flushers: the clients have sent many more requests,
// and it can execute those meanwhile.
const helpAnswers = 4

// BatchDone implements raftfsm.Handler: it writes what the entry queued.
func (h handler) BatchDone() {
	h.s.fsm.now = 0
	h.s.writeAnswers()
}

// writeAnswers counts the queued output and writes it.
func (s *Server) writeAnswers() {
	f := &s.fsm
	f.reads.flush()
	f.writes.flush()
	answers := f.sent + f.replied
	if answers > 0 {
		s.stats.sent.Add(answers)
		s.stats.replySizes(&f.sizes)
		s.stats.bytesEvents.Add(f.eventBytes)
		f.sent, f.replied, f.eventBytes = 0, 0, 0
		f.event = notification{}
	}
	if len(f.dirty) == 0 {
		return
	}
	for _, c := range f.dirty {
		c.dirty = false
	}
	if len(f.dirty) <= fewDirty {
		for _, c := range f.dirty {
			c.flushNow(f.writer)
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
	h.s.eachConn(func(c *conn) {
		c.mu.Lock()
		inFlight := false
		for p := c.head; p != nil && !inFlight; p = p.next {
			inFlight = p.inFlight
		}
		c.mu.Unlock()
		if inFlight {
			h.s.log.Debug("closing a client with requests in flight", "client", c.nc.RemoteAddr(), "reason", reason)
			c.kill()
		}
	})
}

// Jumped implements raftfsm.Handler.
func (h handler) Jumped() {
	h.s.log.Info("closing all clients: the state was replaced by a snapshot")
	h.s.mu.Lock()
	h.s.lost = lostSessions{} // the new state has other sessions
	h.s.mu.Unlock()
	h.s.eachConn((*conn).kill)
}

// handler is the Server as the replicated state sees it. It keeps these methods out of
// the Server's own interface.
type handler struct{ s *Server }

var _ raftfsm.Handler = handler{}

// newFSM returns the applying goroutine's state.
func newFSM() fsm {
	return fsm{writer: newRawWriter(), writes: tally{write: true}}
}

// mayRead reports whether w's client may receive the event being fired.
func (f *fsm) mayRead(w *watch.Watcher) bool {
	c, ok := w.Sink().(*conn)
	return ok && f.fired.Allows(proto.PermRead, c.identities())
}

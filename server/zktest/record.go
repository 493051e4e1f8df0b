package zktest

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// Recording is the conversation between clients and server: one line for each request, reply
// and event, in the order in which the server read and wrote them:
//
//	0x100000000000001 > 1 create /a "v1" ephemeral
//	0x100000000000001 < 1 create /a: zxid 0x2
//	0x100000000000001 > 2 getData /b watch
//	0x100000000000001 < 2 getData /b: zxid 0x2, NoNode
//	0x100000000000001 < event NodeCreated /b
//
// A line begins with the session, the direction from the client's point of view (> is
// to the server), and the number that the client gave to the request.
type Recording struct {
	tape  *tape
	match Match

	mu    sync.Mutex
	lines []string
}

// Record starts to record the matching requests between this server and its clients, with
// their replies and events. The zero Match selects everything except pings; Nth is ignored.
// A multi is one line. We can't record traffic on a TLS port.
func (s *Server) Record(m Match) *Recording {
	s.t.Helper()
	s.inProcess(needsInsight)
	r := &Recording{tape: &s.gate.tape, match: m}
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	r.tape.list = append(r.tape.list, r)
	r.tape.on.Store(true)
	return r
}

// Lines returns the lines so far.
func (r *Recording) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// String returns the lines so far as text.
func (r *Recording) String() string {
	var b strings.Builder
	for _, line := range r.Lines() {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Stop ends the recording. The recorded lines remain available.
func (r *Recording) Stop() {
	t := r.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(o *Recording) bool { return o == r })
	t.on.Store(len(t.list) > 0)
}

// tape distributes requests, replies and events to the recordings.
type tape struct {
	on   atomic.Bool
	mu   sync.Mutex
	list []*Recording
	open map[string]map[int32][]said // requests without a reply, by the client's address and xid
}

// said is a request that awaits its reply.
type said struct {
	request Request
	paths   []string
}

// maxOpen limits how many requests we keep, in case their replies never come.
const maxOpen = 4096

// request records a request.
func (t *tape) request(q server.Request, paths []string) {
	if !t.on.Load() {
		return
	}
	what := said{request: Request{Op: q.Op, Session: q.Session}, paths: paths}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil || len(t.open) > maxOpen {
		t.open = make(map[string]map[int32][]said)
	}
	key := q.Addr.String()
	if t.open[key] == nil || len(t.open[key]) > maxOpen {
		t.open[key] = make(map[int32][]said)
	}
	t.open[key][q.Xid] = append(t.open[key][q.Xid], what)
	t.note(what, requestLine(q, paths))
}

// note appends a line to all recordings that match. The caller holds t.mu.
func (t *tape) note(what said, line string) {
	for _, r := range t.list {
		m := r.match
		if m.Op == 0 && what.request.Op != proto.OpPing {
			m.Op = what.request.Op.Basic() // also matches requests that clients send to keep their session
		}
		if !m.meets(what.request, what.paths) {
			continue
		}
		r.mu.Lock()
		r.lines = append(r.lines, line)
		r.mu.Unlock()
	}
}

// said records the server's output to a client. We track frame boundaries even while there
// is no recording.
func (t *tape) said(c *clientConn, b []byte) {
	on := t.on.Load()
	c.frames.take(b, on, func(frame []byte, first bool) {
		if on {
			t.reply(c, frame, first)
		}
	})
}

// reply records a reply or an event.
func (t *tape) reply(c *clientConn, frame []byte, first bool) {
	r := proto.NewReader(frame)
	t.mu.Lock()
	defer t.mu.Unlock()
	if first {
		var h proto.ConnectResponse
		if h.Decode(&r); r.Err() == nil {
			c.frames.session = h.SessionID
			t.note(said{request: Request{Op: proto.OpCreateSession, Session: h.SessionID}}, connectLine(&h))
		}
		return
	}
	var h proto.ReplyHeader
	if h.Decode(&r); r.Err() != nil {
		return
	}
	session := c.frames.session
	if h.Xid == proto.XidNotification {
		var e proto.WatcherEvent
		if e.Decode(&r); r.Err() == nil {
			t.note(said{request: Request{Op: opEvent, Path: e.Path, Session: session}, paths: []string{e.Path}}, eventLine(session, &e))
		}
		return
	}
	what := said{request: Request{Session: session}}
	if h.Xid == proto.XidPing {
		what.request.Op = proto.OpPing
	}
	if waiting := t.open[c.key][h.Xid]; len(waiting) > 0 {
		what = waiting[0]
		if len(waiting) == 1 {
			delete(t.open[c.key], h.Xid)
		} else {
			t.open[c.key][h.Xid] = waiting[1:]
		}
	}
	t.note(what, replyLine(&h, what, r.Rest()))
}

// forget is called for a connection that has ended.
func (t *tape) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, key)
}

// opEvent marks events; it isn't the operation of any request.
const opEvent = proto.Op(-1 << 31)

// showConversation writes the recording to the log of a failed test.
func (s *Server) showConversation() {
	if s.conversation != nil {
		s.t.Logf("zktest: %s, the conversation:\n%s", s.name, s.conversation)
	}
}

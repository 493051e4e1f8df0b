package zktest

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// Recording is what clients and server have said to one another, a line for each
// request, reply and event, in the order in which the server read and wrote them:
//
//	0x100000000000001 > 1 create /a "v1" ephemeral
//	0x100000000000001 < 1 create /a: zxid 0x2
//	0x100000000000001 > 2 getData /b watch
//	0x100000000000001 < 2 getData /b: zxid 0x2, NoNode
//	0x100000000000001 < event NodeCreated /b
//
// A line begins with the session, the direction as the client sees it (> is to
// the server) and the number that the client gave to the request.
type Recording struct {
	tape  *tape
	match Match

	mu    sync.Mutex
	lines []string
}

// Record begins to record what the clients of this server and it say to one
// another, as far as it is meant: everything but pings by the zero Match. Nth
// means nothing here. Of a multi there is one line. What goes through a port
// with TLS cannot be read.
func (s *Server) Record(m Match) *Recording {
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

// Stop ends the recording. What was recorded stays.
func (r *Recording) Stop() {
	t := r.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(o *Recording) bool { return o == r })
	t.on.Store(len(t.list) > 0)
}

// tape hands what is said to the recordings.
type tape struct {
	on   atomic.Bool
	mu   sync.Mutex
	list []*Recording
	open map[string]map[int32][]said // requests without a reply, by the client's address and xid
}

// said is a request that a reply belongs to.
type said struct {
	request Request
	paths   []string
}

// maxOpen bounds what is kept of requests whose replies never come.
const maxOpen = 4096

// request takes a request down.
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

// note gives a line to those whom it concerns; t.mu is held.
func (t *tape) note(what said, line string) {
	for _, r := range t.list {
		m := r.match
		if m.Op == 0 && what.request.Op != proto.OpPing {
			m.Op = basic(what.request.Op) // what clients send to keep their session, too
		}
		if !m.meets(what.request, what.paths) {
			continue
		}
		r.mu.Lock()
		r.lines = append(r.lines, line)
		r.mu.Unlock()
	}
}

// said takes down what the server writes to a client. It also looks at it while
// nobody records, to know where a frame begins.
func (t *tape) said(c *clientConn, b []byte) {
	on := t.on.Load()
	c.frames.take(b, on, func(frame []byte, first bool) {
		if on {
			t.reply(c, frame, first)
		}
	})
}

// reply takes down a reply or an event.
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

// forget is told of a connection that has ended.
func (t *tape) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, key)
}

// opEvent stands for no request.
const opEvent = proto.Op(-1 << 31)

// showConversation writes what was recorded to the log of a test that has failed.
func (s *Server) showConversation() {
	if s.conversation != nil {
		s.t.Logf("zktest: %s, the conversation:\n%s", s.name, s.conversation)
	}
}

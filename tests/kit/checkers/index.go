package checkers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// index is a history arranged for the checkers. We don't change it after it is built,
// except for the parts of a life that we compute on first use.
type index struct {
	h           *history.History
	conns       []*connection   // by number
	lives       map[int64]*life // by session id
	writes      []*write        // every write of every request, with multis split
	byOp        map[*history.Op][]*write
	values      map[string]*write     // by the value written
	byZxid      map[int64][]*write    // writes with a known transaction
	ops         map[int64]*history.Op // by the zxid of the transaction, including failed ones
	paths       map[string]*path
	names       []string            // of paths, sorted
	first       int64               // the lowest zxid of a reply: older changes were made by others
	statements  int                 // about paths
	openCreates map[string]int      // by path; sequential znodes by the prefix of their path
	kidChanges  map[string][]*write // known to have changed the children of a path, by zxid
}

// connection is the record of one connection.
type connection struct {
	id      int
	session int64
	ops     []*history.Op // as sent, including requests without a reply
	frames  []frame       // as received
	attach  *history.Session
	lost    *history.Session
}

// frame is a reply or an event.
type frame struct {
	seq   int
	op    *history.Op
	event *history.Event
}

// life is a session from its creation to its end.
type life struct {
	id      int64
	timeout history.Time
	conns   []*connection // as attached
	changes []*history.Session
	closed  *history.Op             // the first request to close it, nil if there was none
	answers []answer                // that show that it was alive, by Call; computed on first use
	deletes map[string]history.Time // when it first asked to delete a znode; computed with answers
}

func newIndex(h *history.History) *index {
	x := &index{h: h, lives: make(map[int64]*life), byOp: make(map[*history.Op][]*write), values: make(map[string]*write), byZxid: make(map[int64][]*write),
		ops: make(map[int64]*history.Op), paths: make(map[string]*path)}
	x.connect()
	x.takeWrites()
	x.observe()
	x.conclude()
	x.names = slices.Sorted(maps.Keys(x.paths))
	return x
}

// connect arranges the records of connections and sessions.
func (x *index) connect() {
	conns := make(map[int]*connection)
	at := func(id int) *connection {
		if conns[id] == nil {
			conns[id] = &connection{id: id}
		}
		return conns[id]
	}
	for _, o := range x.h.Ops {
		c := at(o.Conn)
		c.session = o.Session
		if o.Sent > 0 {
			c.ops = append(c.ops, o)
		}
		if o.Answered() {
			c.frames = append(c.frames, frame{seq: o.Seq, op: o})
		}
	}
	for _, e := range x.h.Events {
		c := at(e.Conn)
		c.session = e.Session
		c.frames = append(c.frames, frame{seq: e.Seq, event: e})
	}
	for _, s := range x.h.Sessions {
		l := x.life(s.Session)
		l.changes = append(l.changes, s)
		switch s.Change {
		case history.Created, history.Attached:
			c := at(s.Conn)
			c.session, c.attach = s.Session, s
			l.timeout = s.Timeout
		case history.Lost:
			at(s.Conn).lost = s
		}
	}
	for _, id := range slices.Sorted(maps.Keys(conns)) {
		c := conns[id]
		slices.SortStableFunc(c.ops, func(a, b *history.Op) int { return a.Sent - b.Sent })
		slices.SortStableFunc(c.frames, func(a, b frame) int { return a.seq - b.seq })
		x.conns = append(x.conns, c)
		l := x.life(c.session)
		l.conns = append(l.conns, c)
		for _, o := range c.ops {
			if o.Op == proto.OpCloseSession && (l.closed == nil || o.Call < l.closed.Call) {
				l.closed = o
			}
		}
	}
	for _, l := range x.lives {
		slices.SortStableFunc(l.conns, func(a, b *connection) int { return cmp.Compare(a.begin(), b.begin()) })
	}
}

// begin returns when the handshake of the connection was answered. In a history
// without handshakes, connections are in the order of their numbers.
func (c *connection) begin() history.Time {
	if c.attach == nil {
		return 0
	}
	return c.attach.At
}

func (x *index) life(id int64) *life {
	if x.lives[id] == nil {
		x.lives[id] = &life{id: id}
	}
	return x.lives[id]
}

// sessions returns all sessions in the order of their ids.
func (x *index) sessions() []*life {
	return slices.SortedFunc(maps.Values(x.lives), func(a, b *life) int { return cmp.Compare(a.id, b.id) })
}

// under reports whether path is dir or below it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

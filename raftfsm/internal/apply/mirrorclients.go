package apply

import (
	"strings"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// How clients are served while the state follows another ensemble.
//
// Our servers answer reads themselves. The ensemble decides about all other requests.
// They go through our log first, so that they have one order and each server knows its
// pending requests:
//
//  1. A server proposes the request like any other. When it is applied, it changes nothing: the
//     server that proposed it keeps the waiter under the session and a number (Mirror.Cxid
//     counts), and our leader passes the request on to the ensemble's leader (Forward) under
//     the same session and number.
//  2. The ensemble answers every request with a transaction, or with a SYNC. The transaction
//     carries the session and the number. When it is applied, the waiter gets the outcome.
//
// If the outcome of a request can't be known any more, we close its client without an
// answer, as everywhere: the client sees a lost connection. This happens when our
// leadership changes, when our leader loses its connection to the ensemble's (a mark says
// so), when the state jumps, and at the end of the mirror. Before the end, our leader has
// received the answer to a sync that it sent after the last request.
//
// A client can attach with the id and the password of a session immediately, because the
// table has all sessions of the ensemble. But the client's old server may still have a
// request of the session in flight. So our leader tells the ensemble's leader that the
// session has moved to us (REVALIDATE), after which that leader refuses requests from the
// old server. Then our leader sends a sync. The client gets the answer to its attach
// after the answer to the sync. By then we have applied every request that the old server
// passed on, and no more will follow. So a client that looks for a znode that it had
// tried to create finds it, or may safely try again. If the session has ended since, we
// have applied the transaction that ended it, too.

// forwarded identifies a request that was passed on.
type forwarded struct {
	session int64
	cxid    int32
}

// awaited is a request of this server that was passed on.
type awaited struct {
	waiter command.Waiter
	kind   command.Kind
	op     proto.Op
	body   []byte
	gen    uint64 // of the session that a client attaches to; otherwise 0
}

// forward passes on a client's request. The caller holds the tree's lock.
func (g *mirroring) forward(server uint8, c *command.Command) error {
	m := g.m
	switch c.Kind {
	case command.KindExpire, command.KindReap:
		return nil // the ensemble decides about sessions and time
	case command.KindReconfigRefused:
		m.out.Kind, m.out.Op, m.out.Body = command.KindRequest, proto.OpReconfig, nil
		m.out.Code = proto.ErrReconfigDisabled
		m.Handler.Applied(&m.out)
		return nil
	}
	m.Mirror.Cxid++ // on every server
	if !g.mark.InSync || m.Mirror.Broken != "" {
		return g.rest(c)
	}
	if c.Kind == command.KindAttach {
		g.forwardAttach(server, c)
		return nil
	}
	if code := m.Sessions.Check(c.Session, c.Gen); code != proto.Ok && c.Kind == command.KindRequest {
		m.out.Code = code
		m.Handler.Applied(&m.out)
		return nil
	}
	f := mirrored.Forward{Session: c.Session, Cxid: m.Mirror.Cxid, Op: c.Op}
	switch {
	case c.Kind == command.KindSync:
		f.Op = proto.OpSync
	case c.Op == proto.OpReconfig:
		m.out.Code = proto.ErrReconfigDisabled // the ensemble owns the list of servers
		m.Handler.Applied(&m.out)
		return nil
	}
	g.await(c, f.Op, c.Session, 0)
	g.pass(f, c)
	return nil
}

// forwardAttach attaches a client to its session, or forwards its request for a new one.
func (g *mirroring) forwardAttach(server uint8, c *command.Command) {
	m := g.m
	m.out.Op = proto.OpCreateSession
	if c.Session == 0 {
		counter := uint64(m.tx.Time)<<16 | uint64(uint16(m.Mirror.Cxid)) // above the ids of ZooKeeper's servers; the top byte differs anyway
		id := int64(mirrored.Sessions<<56 | counter&(1<<56-1))
		g.await(c, proto.OpCreateSession, id, 0)
		g.pass(mirrored.Forward{Session: id, Timeout: c.Timeout, Cxid: m.Mirror.Cxid, Op: proto.OpCreateSession}, c)
		return
	}
	old, _ := m.Sessions.Get(c.Session)
	row, ok := m.Sessions.Attach(c.Session, c.Password[:], c.Timeout, server)
	if !ok {
		m.out.Code = proto.ErrSessionExpired
		m.Handler.Applied(&m.out)
		return
	}
	m.Rows ^= rowDigest(old) ^ rowDigest(row)
	m.attached = row
	m.out.Attached, m.out.Waiter = &m.attached, nil
	m.Handler.Applied(&m.out) // every server closes the connection that had the session
	g.pass(mirrored.Forward{Session: c.Session, Timeout: c.Timeout, Op: proto.OpCreateSession}, c)
	sync := *c
	sync.Body = syncBody
	g.pass(mirrored.Forward{Session: c.Session, Cxid: m.Mirror.Cxid, Op: proto.OpSync}, &sync)
	g.await(c, proto.OpCreateSession, c.Session, row.Gen)
}

// syncBody is the body of a sync that no client has asked for.
var syncBody = (&proto.SyncRequest{Path: "/"}).Append(nil)

// await keeps the waiter of a request of this server. gen is the generation of the session that a client
// attaches to, otherwise 0.
func (g *mirroring) await(c *command.Command, op proto.Op, session int64, gen uint64) {
	m := g.m
	if c.Waiter == nil {
		return
	}
	if g.waiting == nil {
		g.waiting = make(map[forwarded]awaited)
	}
	g.waiting[forwarded{session, m.Mirror.Cxid}] = awaited{c.Waiter, c.Kind, op, append([]byte(nil), c.Body...), gen}
}

// pass hands a copy of f to the control goroutine, if this server leads.
func (g *mirroring) pass(f mirrored.Forward, c *command.Command) {
	m := g.m
	if !m.Own(m.Incarnation) {
		return
	}
	f.Body = append([]byte(nil), c.Body...)
	f.IDs = append([]proto.ID(nil), c.IDs...)
	for i := range f.IDs {
		id := &f.IDs[i]
		id.Scheme, id.ID = strings.Clone(id.Scheme), strings.Clone(id.ID)
	}
	m.events = append(m.events, Event{Kind: Forwarded, Forward: &f})
}

// answered removes and returns the request that a transaction of the ensemble answers.
func (g *mirroring) answered(tx *zktxn.Txn) (awaited, bool) {
	key := forwarded{tx.Session, tx.Cxid}
	a, ok := g.waiting[key]
	delete(g.waiting, key)
	return a, ok
}

// answer makes res the outcome of a request that was passed on.
func (g *mirroring) answer(a awaited, res *tree.Result, row *session.Session) {
	m := g.m
	m.out.Kind, m.out.Op, m.out.Waiter, m.out.Body = a.kind, a.op, a.waiter, a.body
	if res.Code == proto.Ok && a.kind == command.KindRequest {
		res.Op = a.op
	}
	if a.kind == command.KindAttach {
		m.out.Attached, m.out.Result = row, nil
	}
}

// answerOne answers a request that was passed on and gets no transaction.
func (g *mirroring) answerOne(k *mirrored.Answer) {
	m := g.m
	key := forwarded{k.Session, k.Cxid}
	a, ok := g.waiting[key]
	if !ok {
		return
	}
	delete(g.waiting, key)
	m.out = command.Applied{Kind: a.kind, Op: a.op, Waiter: a.waiter, Session: k.Session, Code: k.Code}
	if a.gen > 0 && k.Code == proto.Ok {
		switch row, ok := m.Sessions.Get(k.Session); {
		case !ok:
			m.out.Code = proto.ErrSessionExpired
		case row.Gen != a.gen:
			m.out.Code = proto.ErrSessionMoved
		default:
			m.attached = row
			m.out.Attached = &m.attached
		}
	}
	m.Handler.Applied(&m.out)
}

// giveUp closes the clients of this server that have forwarded requests without an
// outcome. The caller holds the tree's lock.
func (g *mirroring) giveUp() {
	m := g.m
	for key, a := range g.waiting {
		m.out = command.Applied{Kind: a.kind, Op: a.op, Waiter: a.waiter, Session: key.session, Code: proto.ErrSessionMoved}
		m.Handler.Applied(&m.out)
	}
	clear(g.waiting)
}

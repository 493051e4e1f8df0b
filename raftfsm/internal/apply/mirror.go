package apply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// How the servers follow an Apache ZooKeeper ensemble, and replace it.
//
//	begin = as the commit of a restore         the ensemble's state replaces ours
//	txns  = prev:8 (size:4 transaction)*       as the ensemble's leader sends them
//	mark  = proposed:8 time:8 inSync:1 session:8 cxid:4 code:4 leader   its leader's last report
//	end   = zxid:8                             the newest transaction of the ensemble
//	phase = phase:1
//
// A mirror is part of the state, so all servers are in the same phase at the same entry:
//
//   - mirrored.Following. The tree has the zxid of the newest transaction of the ensemble
//     that is applied here. No election, expiry or client request gets a zxid. So a new
//     leader of ours, or a restarted server, knows from which zxid to continue. A command
//     with transactions names the zxid before its first one. If that isn't the tree's,
//     the command has no effect. So no transaction is applied twice or left out,
//     whichever leader of ours proposed it.
//   - mirrored.Open. This phase starts with an end that has the tree's zxid: a new
//     epoch starts, and our leader is in charge of sessions and transactions. New
//     sessions get the passwords that ZooKeeper would give them, so that the state
//     can go back to ZooKeeper.
//   - mirrored.Fenced. The state goes back to ZooKeeper: clients can no longer change
//     anything, and no session expires, so a copy of the state remains current.
//   - mirrored.Done. The state can't go back any more. The phase remains only to prevent
//     a second mirror over this state.
//
// Each transaction of ZooKeeper 3.6 and later carries the digest of the tree after it. Every
// server compares it with its own tree's. If they differ, the mirror is broken from that
// transaction on: all servers ignore the transactions after it.

// MirrorLevel is the behaviour level that introduced mirrors.
const MirrorLevel = 4

// AppendMirrorTxn appends one transaction to the body of a KindMirrorTxns.
func AppendMirrorTxn(b, txn []byte) []byte { return proto.AppendBuffer(b, txn) }

// mirroring is the data of a mirror outside the state. The caller of its methods holds
// the tree's lock, except for Now and Changed.
type mirroring struct {
	m       *Machine
	mark    mirrored.Mark // last report of the ensemble's leader
	waiting map[forwarded]awaited
	replays []tree.Change // reused
	// changed is closed at the next change of the phase; nil until a caller asks.
	changed atomic.Pointer[chan struct{}]
}

// Now returns the mirror, the last report of the ensemble's leader, and the newest zxid.
func (g *mirroring) Now() (s mirrored.State, mark mirrored.Mark, zxid int64) {
	g.m.Tree.RLock()
	defer g.m.Tree.RUnlock()
	return g.m.Mirror, g.mark, g.m.Tree.LastZxid()
}

// errNotMirrored refuses a command of a mirror in another phase.
var errNotMirrored = errors.New("the servers do not follow an ensemble")

// WaiterFunc is a Waiter that calls a function.
type WaiterFunc func(*command.Applied)

// Applied implements Waiter.
func (done WaiterFunc) Applied(a *command.Applied) { done(a) }

// rest applies a command that the current phase doesn't allow, without effect. The server
// doesn't serve clients in such a phase, so the command was in flight at the start of the
// phase.
func (g *mirroring) rest(c *command.Command) error {
	m := g.m
	switch c.Kind {
	case command.KindExpire, command.KindReap:
		return nil
	case command.KindAttach:
		m.out.Op = proto.OpCreateSession
	case command.KindReconfigRefused:
		m.out.Kind, m.out.Op, m.out.Body = command.KindRequest, proto.OpReconfig, nil
	case command.KindSync:
		m.out.Op, m.out.Body = proto.OpSync, nil
	}
	m.out.Code = proto.ErrSessionMoved // closes the connection without an answer
	m.Handler.Applied(&m.out)
	return nil
}

// apply applies a command of a mirror other than its begin. The tree is locked.
func (g *mirroring) apply(c *command.Command) error {
	m := g.m
	var err error
	switch c.Kind {
	case command.KindMirrorTxns:
		err = g.replayAll(c.Body)
	case command.KindMirrorMark:
		err = g.heard(c.Body)
	case command.KindMirrorEnd:
		err = g.end(c.Body)
	case command.KindMirrorPhase:
		err = g.setPhase(c.Body)
	}
	m.out = command.Applied{Kind: c.Kind, Waiter: c.Waiter}
	if err != nil {
		m.Log.Warn("a command of the mirror has no effect", "kind", c.Kind, "err", err)
		m.out.Code = proto.ErrBadVersion
	}
	if c.Kind != command.KindMirrorTxns && c.Kind != command.KindMirrorMark {
		g.notify()
	}
	if c.Waiter != nil {
		c.Waiter.Applied(&m.out)
	}
	return nil
}

// notify closes the channel of Changed.
func (g *mirroring) notify() {
	if ch := g.changed.Swap(nil); ch != nil {
		close(*ch)
	}
}

// Changed returns a channel that is closed at the next notify.
func (g *mirroring) Changed() <-chan struct{} {
	m := g.m
	m.Tree.RLock()
	defer m.Tree.RUnlock()
	for {
		if ch := g.changed.Load(); ch != nil {
			return *ch
		}
		ch := make(chan struct{})
		if g.changed.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// heard stores the report of the ensemble's leader, and answers syncs.
func (g *mirroring) heard(b []byte) error {
	was := g.mark.InSync
	var k mirrored.Mark
	if err := k.Decode(b); err != nil {
		return err
	}
	if k.Answer != (mirrored.Answer{}) {
		g.answerOne(&k.Answer)
	}
	g.mark = k
	if was != k.InSync {
		if !k.InSync {
			g.giveUp()
		}
		g.notify()
	}
	return nil
}

// begin replaces the state by an ensemble's state and sessions.
func (g *mirroring) begin(a *stateTransfer, b []byte) error {
	m := g.m
	if m.Level < MirrorLevel {
		return errors.New("not every server supports mirrors: nothing was changed")
	}
	switch {
	case m.Mirror.Phase == mirrored.None && (m.Tree.NodeCount() > tree.New().NodeCount() || m.Sessions.Len() > 0):
		return errors.New("the servers already have a state with znodes or sessions: nothing was changed")
	case m.Mirror.Phase > mirrored.Following:
		return fmt.Errorf("the servers have taken over from an ensemble (phase %v): nothing was changed", m.Mirror.Phase)
	}
	_, t, err := a.complete(b)
	if err != nil {
		return err
	}
	rows := session.NewTable()
	if rest, err := rows.DecodeFrom(a.sessions); err != nil || len(rest) > 0 {
		return fmt.Errorf("the sessions are damaged (%d bytes too many), nothing was changed: %w", len(rest), err)
	}
	m.Log.Info("the servers now follow an ensemble", "zxid", fmt.Sprintf("0x%x", t.LastZxid()), "znodes", t.NodeCount(), "sessions", rows.Len())
	replace(m, t, false)
	for row := range rows.All {
		m.Sessions.Put(row)
		m.Rows ^= rowDigest(row)
	}
	m.Mirror = mirrored.State{Phase: mirrored.Following}
	g.notify()
	settle(m, a, command.KindMirrorBegin)
	return nil
}

// replayAll applies transactions of the ensemble.
func (g *mirroring) replayAll(b []byte) error {
	m := g.m
	if m.Mirror.Phase != mirrored.Following {
		return errNotMirrored
	}
	if m.Mirror.Broken != "" {
		return errors.New(m.Mirror.Broken)
	}
	d := proto.AliasReader(b)
	if prev := d.Long(); prev != m.Tree.LastZxid() {
		return fmt.Errorf("transactions after zxid 0x%x come after 0x%x", prev, m.Tree.LastZxid())
	}
	for d.Len() > 0 {
		payload := d.Buffer()
		if d.Err() != nil {
			return d.Err()
		}
		tx, err := zktxn.Decode(payload)
		if err == nil && tx.Zxid <= m.Tree.LastZxid() {
			err = fmt.Errorf("transaction 0x%x comes after 0x%x", tx.Zxid, m.Tree.LastZxid())
		}
		if err == nil {
			err = g.replay(tx)
		}
		if err == nil {
			m.rec.foreign(tx.Zxid, payload)
		}
		if err != nil {
			m.Mirror.Broken = err.Error()
			g.giveUp()
			g.notify()
			m.Log.Error("the mirror is broken", "err", err)
			return err
		}
	}
	return nil
}

// replay applies one transaction of the ensemble and compares the digest.
func (g *mirroring) replay(tx *zktxn.Txn) error {
	m := g.m
	own := tree.Txn{Zxid: tx.Zxid, Time: tx.Time, Session: tx.Session, Policy: m.tx.Policy}
	g.replays = tx.Changes(g.replays[:0], own.Policy)
	res := m.Tree.Replay(&own, tx.Type, g.replays)
	clear(g.replays)
	var row session.Session
	switch body := tx.Body.(type) {
	case *zktxn.CreateSessionTxn:
		row = session.Session{ID: tx.Session, Timeout: body.Timeout, Password: body.PasswordOf(tx.Session), Gen: 1}
		g.putSession(row)
	case *zktxn.CloseSessionTxn:
		if row, ok := m.Sessions.Get(tx.Session); ok {
			m.Rows ^= rowDigest(row)
			m.Sessions.Remove(tx.Session)
		}
	}
	m.out = command.Applied{Kind: command.KindMirrorTxns, Op: tx.Type, Session: tx.Session, Zxid: tx.Zxid, Code: res.Code, Result: res, Events: res.Events}
	if a, ok := g.answered(tx); ok {
		g.answer(a, res, &row)
	}
	m.Handler.Applied(&m.out)
	if d := tx.Digest; d != nil && d.Comparable() {
		if own := m.Tree.Digest(); own != d.Value {
			return fmt.Errorf("the digest after transaction 0x%x (%s) is %#x here and %#x in the ensemble: the states differ", tx.Zxid, tx.Describe(), own, d.Value)
		}
		m.Numbers.Compared.Add(1)
	}
	return nil
}

// putSession adds or replaces a session.
func (g *mirroring) putSession(row session.Session) {
	m := g.m
	if old, ok := m.Sessions.Get(row.ID); ok {
		m.Rows ^= rowDigest(old)
	}
	m.Sessions.Put(row)
	m.Rows ^= rowDigest(row)
}

// end makes our servers replace the ensemble, if the state includes its newest
// transaction. Every session gets its full timeout.
func (g *mirroring) end(b []byte) error {
	m := g.m
	if len(b) != 8 {
		return fmt.Errorf("body of %d bytes", len(b))
	}
	last := m.Tree.LastZxid()
	epoch := last>>32 + 1
	switch zxid := int64(binary.BigEndian.Uint64(b)); {
	case m.Mirror.Phase != mirrored.Following:
		return errNotMirrored
	case m.Mirror.Broken != "":
		return errors.New(m.Mirror.Broken)
	case zxid != last:
		return fmt.Errorf("the state has zxid 0x%x, not 0x%x", last, zxid)
	case epoch > MaxEpoch:
		return fmt.Errorf("the epoch would be %d, there is none above %d", epoch, int64(MaxEpoch))
	}
	g.giveUp()
	m.Mirror = mirrored.State{Phase: mirrored.Open, Zxid: last}
	m.Sessions.Skip(uint64(m.tx.Time) << 16) // above the ids that ZooKeeper has made from its clock
	m.tx.Zxid, m.tx.Session = epoch<<32, 0
	if m.Config != nil {
		if err := m.establish(m.tx.Zxid, m.tx.Policy); err != nil {
			return err
		}
		m.installConfig()
	} else if len(m.Tree.Get(tree.ConfigPath).Data()) > 0 {
		m.setConfig(nil, 0) // clients must not follow the list to the old servers
	} else {
		m.Tree.Advance(epoch << 32)
		m.rec.nothing(proto.Ok)
	}
	for row := range m.Sessions.All {
		m.events = m.changed(attachedEvent(row))
	}
	m.Log.Info("the servers took over from the ensemble that they followed", "its zxid", fmt.Sprintf("0x%x", last), "zxid", fmt.Sprintf("0x%x", epoch<<32), "sessions", m.Sessions.Len())
	m.SnapCounter.Soon()
	return nil
}

// setPhase moves between the phases after the end: Open, Fenced and Done.
func (g *mirroring) setPhase(b []byte) error {
	m := g.m
	if len(b) != 1 {
		return fmt.Errorf("body of %d bytes", len(b))
	}
	from, to := m.Mirror.Phase, mirrored.Phase(b[0])
	switch {
	case from == to:
		return nil
	case from == mirrored.Open && (to == mirrored.Done || to == mirrored.Fenced), from == mirrored.Fenced && to == mirrored.Open:
	default:
		return fmt.Errorf("the phase is %v, which %v cannot follow", from, to)
	}
	m.Mirror.Phase = to
	if to == mirrored.Open { // no server has heard of the sessions for a while
		for row := range m.Sessions.All {
			m.events = m.changed(attachedEvent(row))
		}
	}
	m.Log.Info("the mirror is in another phase", "phase", to)
	return nil
}

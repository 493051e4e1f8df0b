package apply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// How the servers follow an Apache ZooKeeper ensemble, and take over from it.
//
//	begin = as the commit of a restore         the ensemble's state replaces ours
//	txns  = prev:8 (size:4 transaction)*       as the ensemble's leader sends them
//	mark  = proposed:8 time:8 inSync:1 session:8 cxid:4 code:4 leader   what its leader has said last
//	end   = zxid:8                             the newest transaction of the ensemble
//	phase = phase:1
//
// A mirror is a part of the state, so all servers are in the same phase at the same entry:
//
//   - MirrorFollowing. The zxid of the tree is that of the newest transaction of the ensemble
//     that is applied here. Nothing else gives a zxid: no election, no expiry, no client. So a
//     new leader of ours, or a restarted server, knows what to ask the ensemble for. A command
//     with transactions names the zxid before its first; if that isn't the tree's, the command
//     has no effect. So no transaction is applied twice or left out, whichever leader of ours
//     proposed it.
//   - MirrorOpen. An end with the tree's zxid takes over: a new epoch begins, and we are in
//     charge of sessions and transactions. New sessions get the passwords that ZooKeeper would
//     give them, so that it can take the state back.
//   - MirrorFenced. The way back was taken: no client changes anything any more, and no session
//     expires, so a copy of the state stays the newest.
//   - MirrorDone. The way back was given up. The phase only remains so that nothing begins a
//     second mirror over this state.
//
// Each transaction of ZooKeeper 3.6 and later carries the digest of the tree after it. Every
// server compares it with its own tree's. If they differ, the mirror is broken from that
// transaction on: all servers ignore the transactions after it.

// MirrorLevel is the behaviour level that introduced mirrors.
const MirrorLevel = 4

// MirrorPhase is how far a mirror has come.
type MirrorPhase uint8

// The phases.
const (
	MirrorNone      MirrorPhase = iota // there is no mirror
	MirrorFollowing                    // the state is that of another ensemble
	MirrorOpen                         // we have taken over, and can give back
	MirrorFenced                       // we have given back
	MirrorDone                         // we have taken over for good
	mirrorEnd                          // one past the last
)

// String returns the phase's name.
func (p MirrorPhase) String() string {
	switch p {
	case MirrorNone:
		return "none"
	case MirrorFollowing:
		return "following"
	case MirrorOpen:
		return "open"
	case MirrorFenced:
		return "fenced"
	case MirrorDone:
		return "done"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Mirror is the mirror in the state.
type Mirror struct {
	Phase  MirrorPhase
	Broken string // why no more transactions are applied; "" while the mirror is intact
	Zxid   int64  // the ensemble's newest transaction, once we have taken over
	Cxid   int32  // counts what clients have wanted from the ensemble
}

// MirrorMark is what the leader of the ensemble has said last, as our leader heard it. It is
// not in a snapshot.
type MirrorMark struct {
	Proposed int64  // the newest zxid that the leader has proposed
	Time     int64  // of our leader, in milliseconds since the Unix epoch
	InSync   bool   // our leader is connected to it and has everything up to the mark
	Leader   string // its address
	Answer   MirrorAnswer
}

// MirrorAnswer is the outcome of a client's request that no transaction answers: a sync that the
// ensemble has answered, or a request that it would not take. The zero value is none.
type MirrorAnswer struct {
	Session int64
	Cxid    int32
	Code    proto.Code // ErrSessionMoved closes the client
}

// Append appends the encoding of k.
func (k *MirrorMark) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(k.Proposed))
	b = binary.BigEndian.AppendUint64(b, uint64(k.Time))
	b = proto.AppendBool(b, k.InSync)
	b = proto.AppendLong(b, k.Answer.Session)
	b = proto.AppendInt(b, k.Answer.Cxid)
	b = proto.AppendInt(b, int32(k.Answer.Code))
	return proto.AppendString(b, k.Leader)
}

func (k *MirrorMark) decode(b []byte) error {
	d := proto.NewReader(b)
	*k = MirrorMark{
		Proposed: d.Long(), Time: d.Long(), InSync: d.Bool(),
		Answer: MirrorAnswer{d.Long(), d.Int(), proto.Code(d.Int())}, Leader: d.String(),
	}
	return d.Err()
}

// AppendMirrorTxn appends one transaction to the body of a KindMirrorTxns.
func AppendMirrorTxn(b, txn []byte) []byte { return proto.AppendBuffer(b, txn) }

// appendTo appends the encoding of the mirror: nothing without one.
func (k *Mirror) appendTo(b []byte) []byte {
	if *k == (Mirror{}) {
		return b
	}
	b = append(b, byte(k.Phase))
	b = binary.BigEndian.AppendUint64(b, uint64(k.Zxid))
	b = proto.AppendInt(b, k.Cxid)
	return proto.AppendString(b, k.Broken)
}

// decode reads the encoding of a mirror, the whole of b.
func (k *Mirror) decode(b []byte) error {
	*k = Mirror{}
	if len(b) == 0 {
		return nil
	}
	k.Phase = MirrorPhase(b[0])
	d := proto.NewReader(b[1:])
	k.Zxid, k.Cxid, k.Broken = d.Long(), d.Int(), d.String()
	switch {
	case d.Err() != nil:
		return fmt.Errorf("mirror: %w", d.Err())
	case d.Len() > 0:
		return fmt.Errorf("mirror: %d bytes too many", d.Len())
	case k.Phase >= mirrorEnd:
		return fmt.Errorf("mirror: %v", k.Phase)
	}
	return nil
}

// MirrorNow returns the mirror, and what the ensemble's leader has said last.
func (m *Machine) MirrorNow() (k Mirror, mark MirrorMark, zxid int64) {
	m.Tree.RLock()
	defer m.Tree.RUnlock()
	return m.Mirror, m.mark, m.Tree.LastZxid()
}

// Rests reports whether only the log of another ensemble may change the state, or nothing may.
// The tree is locked.
func (k *Mirror) Rests() bool { return k.Phase == MirrorFollowing || k.Phase == MirrorFenced }

// errNotMirrored refuses a command of a mirror in another phase.
var errNotMirrored = errors.New("the servers do not follow an ensemble")

// WaiterFunc is a Waiter that calls a function.
type WaiterFunc func(*command.Applied)

// Applied implements Waiter.
func (done WaiterFunc) Applied(a *command.Applied) { done(a) }

// applyResting applies a command that a phase has no room for: it has no effect. The server
// doesn't serve clients in such a phase, so the command was on its way when the phase began.
func (m *Machine) applyResting(c *command.Command) error {
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

// applyMirror applies a command of a mirror other than its begin. The tree is locked.
func (m *Machine) applyMirror(c *command.Command) error {
	var err error
	switch c.Kind {
	case command.KindMirrorTxns:
		err = m.applyMirrorTxns(c.Body)
	case command.KindMirrorMark:
		err = m.applyMirrorMark(c.Body)
	case command.KindMirrorEnd:
		err = m.applyMirrorEnd(c.Body)
	case command.KindMirrorPhase:
		err = m.applyMirrorPhase(c.Body)
	}
	m.out = command.Applied{Kind: c.Kind, Waiter: c.Waiter}
	if err != nil {
		m.Log.Warn("a command of the mirror has no effect", "kind", c.Kind, "err", err)
		m.out.Code = proto.ErrBadVersion
	}
	if c.Kind != command.KindMirrorTxns && c.Kind != command.KindMirrorMark {
		m.mirrorChanged()
	}
	if c.Waiter != nil {
		c.Waiter.Applied(&m.out)
	}
	return nil
}

// mirrorChanged closes the channel of MirrorChanged.
func (m *Machine) mirrorChanged() {
	if ch := m.mirrored.Swap(nil); ch != nil {
		close(*ch)
	}
}

// MirrorChanged returns a channel that is closed at the next change of the mirror's phase.
func (m *Machine) MirrorChanged() <-chan struct{} {
	m.Tree.RLock()
	defer m.Tree.RUnlock()
	for {
		if ch := m.mirrored.Load(); ch != nil {
			return *ch
		}
		ch := make(chan struct{})
		if m.mirrored.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// applyMirrorMark notes what the ensemble's leader has said, and answers syncs.
func (m *Machine) applyMirrorMark(b []byte) error {
	was := m.mark.InSync
	var k MirrorMark
	if err := k.decode(b); err != nil {
		return err
	}
	if k.Answer != (MirrorAnswer{}) {
		m.applyMirrorAnswer(&k.Answer)
	}
	m.mark = k
	if was != k.InSync {
		if !k.InSync {
			m.giveUp()
		}
		m.mirrorChanged()
	}
	return nil
}

// applyMirrorBegin replaces the state by that of an ensemble, with its sessions.
func (m *Machine) applyMirrorBegin(a *stateTransfer, b []byte) error {
	if m.Level < MirrorLevel {
		return errors.New("a mirror before every server knows what it is: nothing was changed")
	}
	switch {
	case m.Mirror.Phase == MirrorNone && (m.Tree.NodeCount() > tree.New().NodeCount() || m.Sessions.Len() > 0):
		return errors.New("the servers have a state of their own, with znodes or sessions: nothing was changed")
	case m.Mirror.Phase > MirrorFollowing:
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
	m.Log.Info("the servers follow an ensemble from here on", "zxid", fmt.Sprintf("0x%x", t.LastZxid()), "znodes", t.NodeCount(), "sessions", rows.Len())
	m.replace(t, false)
	for row := range rows.All {
		m.Sessions.Put(row)
		m.Rows ^= rowDigest(row)
	}
	m.Mirror = Mirror{Phase: MirrorFollowing}
	m.mirrorChanged()
	m.settle(a, command.KindMirrorBegin)
	return nil
}

// applyMirrorTxns applies transactions of the ensemble.
func (m *Machine) applyMirrorTxns(b []byte) error {
	if m.Mirror.Phase != MirrorFollowing {
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
			err = m.replay(tx)
		}
		if err == nil {
			m.rec.foreign(tx.Zxid, payload)
		}
		if err != nil {
			m.Mirror.Broken = err.Error()
			m.giveUp()
			m.mirrorChanged()
			m.Log.Error("the mirror is broken", "err", err)
			return err
		}
	}
	return nil
}

// replay applies one transaction of the ensemble and compares the digest.
func (m *Machine) replay(tx *zktxn.Txn) error {
	own := tree.Txn{Zxid: tx.Zxid, Time: tx.Time, Session: tx.Session, Policy: m.tx.Policy}
	m.changes = tx.Changes(m.changes[:0], own.Policy)
	res := m.Tree.Replay(&own, tx.Type, m.changes)
	clear(m.changes)
	var row session.Session
	switch body := tx.Body.(type) {
	case *zktxn.CreateSessionTxn:
		row = session.Session{ID: tx.Session, Timeout: body.Timeout, Password: body.PasswordOf(tx.Session), Gen: 1}
		m.putSession(row)
	case *zktxn.CloseSessionTxn:
		if row, ok := m.Sessions.Get(tx.Session); ok {
			m.Rows ^= rowDigest(row)
			m.Sessions.Remove(tx.Session)
		}
	}
	m.out = command.Applied{Kind: command.KindMirrorTxns, Op: tx.Type, Session: tx.Session, Zxid: tx.Zxid, Code: res.Code, Result: res, Events: res.Events}
	if a, ok := m.answered(tx); ok {
		m.answer(a, res, &row)
	}
	m.Handler.Applied(&m.out)
	if d := tx.Digest; d != nil && d.Comparable() {
		if own := m.Tree.Digest(); own != d.Value {
			return fmt.Errorf("the digest after transaction 0x%x (%s) is %#x here and %#x in the ensemble: the states differ", tx.Zxid, describe(tx), own, d.Value)
		}
		m.Numbers.Compared.Add(1)
	}
	return nil
}

// putSession adds or replaces a session.
func (m *Machine) putSession(row session.Session) {
	if old, ok := m.Sessions.Get(row.ID); ok {
		m.Rows ^= rowDigest(old)
	}
	m.Sessions.Put(row)
	m.Rows ^= rowDigest(row)
}

// describe names the operation and the paths of a transaction.
func describe(tx *zktxn.Txn) string {
	paths := tx.Paths()
	const most = 8
	if len(paths) > most {
		paths = append(paths[:most:most], fmt.Sprintf("and %d more", len(paths)-most))
	}
	return strings.TrimSpace(tx.Type.String() + " " + strings.Join(paths, ", "))
}

// applyMirrorEnd takes over from the ensemble if the state is the one after its newest
// transaction. Every session gets its full timeout.
func (m *Machine) applyMirrorEnd(b []byte) error {
	if len(b) != 8 {
		return fmt.Errorf("body of %d bytes", len(b))
	}
	last := m.Tree.LastZxid()
	epoch := last>>32 + 1
	switch zxid := int64(binary.BigEndian.Uint64(b)); {
	case m.Mirror.Phase != MirrorFollowing:
		return errNotMirrored
	case m.Mirror.Broken != "":
		return errors.New(m.Mirror.Broken)
	case zxid != last:
		return fmt.Errorf("the state is that of zxid 0x%x, not of 0x%x", last, zxid)
	case epoch > MaxEpoch:
		return fmt.Errorf("the epoch would be %d, there is none above %d", epoch, int64(MaxEpoch))
	}
	m.giveUp()
	m.Mirror = Mirror{Phase: MirrorOpen, Zxid: last}
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
	m.Log.Info("the servers have taken over from the ensemble that they followed", "its zxid", fmt.Sprintf("0x%x", last), "zxid", fmt.Sprintf("0x%x", epoch<<32), "sessions", m.Sessions.Len())
	m.SnapCounter.Soon()
	return nil
}

// applyMirrorPhase ends the time in which the way back is open, takes that way, or undoes that.
func (m *Machine) applyMirrorPhase(b []byte) error {
	if len(b) != 1 {
		return fmt.Errorf("body of %d bytes", len(b))
	}
	from, to := m.Mirror.Phase, MirrorPhase(b[0])
	switch {
	case from == to:
		return nil
	case from == MirrorOpen && (to == MirrorDone || to == MirrorFenced), from == MirrorFenced && to == MirrorOpen:
	default:
		return fmt.Errorf("the phase is %v, which %v cannot follow", from, to)
	}
	m.Mirror.Phase = to
	if to == MirrorOpen { // no server has heard of the sessions for a while
		for row := range m.Sessions.All {
			m.events = m.changed(attachedEvent(row))
		}
	}
	m.Log.Info("the mirror is in another phase", "phase", to)
	return nil
}

package apply

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/tree"
)

// applyCommand applies one command and calls the handler. The tree is locked.
func (m *Machine) applyCommand(server uint8, c *command.Command) error {
	m.out = command.Applied{Kind: c.Kind, Op: c.Op, Waiter: c.Waiter, Session: c.Session, Body: c.Body}
	var err error
	if m.Mirror.Phase != mirrored.None && c.Kind <= command.KindReconfigRefused {
		switch m.Mirror.Phase {
		case mirrored.Following:
			return m.Mirroring.forward(server, c)
		case mirrored.Fenced:
			return m.Mirroring.rest(c)
		}
	}
	switch c.Kind {
	case command.KindRequest:
		err = m.applyRequest(c)
	case command.KindAttach:
		m.applyAttach(server, c)
	case command.KindSync:
		m.out.Op, m.out.Body = proto.OpSync, nil
	case command.KindExpire:
		if m.Sessions.Check(c.Session, c.Gen) != proto.Ok {
			return nil // the client attached again, or the session has ended
		}
		m.endSession(c)
		if m.Own(m.Incarnation) {
			m.Numbers.Expired.Add(1)
		}
	case command.KindReap:
		err = m.applyReap(c)
	case command.KindReconfigRefused:
		err = m.applyRefusal(c)
	case command.KindRaise:
		return m.applyRaise(c)
	case command.KindMembership:
		return m.applyMembership(c)
	case command.KindRestoreBegin, command.KindRestoreChunk, command.KindRestoreCommit, command.KindRestoreAbort,
		command.KindRestoreSessions, command.KindMirrorBegin:
		return m.applyRestore(c)
	case command.KindMirrorTxns, command.KindMirrorMark, command.KindMirrorEnd, command.KindMirrorPhase:
		return m.Mirroring.apply(c)
	default:
		err = command.ErrUnknownCommand
	}
	if err != nil {
		return err
	}
	m.Handler.Applied(&m.out)
	return nil
}

// applyRequest applies a client's write.
func (m *Machine) applyRequest(c *command.Command) error {
	req, err := command.DecodeRequest(&m.requests, c.Op, c.Body)
	if err != nil {
		return err
	}
	if code := m.Sessions.Check(c.Session, c.Gen); code != proto.Ok {
		m.out.Code = code
		if code == proto.ErrSessionExpired { // the refusal uses up a zxid, as in ZooKeeper
			m.advance(c)
			m.rec.nothing(code)
		}
		return nil
	}
	switch c.Op {
	case proto.OpCloseSession:
		m.endSession(c)
	case proto.OpReconfig:
		m.applyReconfig(c, req.(*proto.ReconfigRequest))
	default:
		m.ran(m.Tree.Apply(m.begin(c), c.Op, req))
		m.rec.result(c, m.out.Result)
	}
	return nil
}

// advance gives the command a zxid although it changes no znode.
func (m *Machine) advance(c *command.Command) {
	tx := m.begin(c)
	m.Tree.Advance(tx.Zxid)
	m.out.Zxid = tx.Zxid
}

// ran records the outcome of a tree transaction.
func (m *Machine) ran(res *tree.Result) {
	m.out.Zxid = m.tx.Zxid
	m.out.Code = res.Code
	m.out.Result = res
	m.out.Events = res.Events
}

// endSession removes a session and its ephemeral znodes.
func (m *Machine) endSession(c *command.Command) {
	m.out.Op, m.out.Body = proto.OpCloseSession, nil
	m.ran(m.Tree.Apply(m.begin(c), proto.OpCloseSession, nil))
	m.rec.endSession(m.out.Result)
	if row, ok := m.Sessions.Get(c.Session); ok {
		m.Rows ^= rowDigest(row)
		m.Sessions.Remove(c.Session)
	}
	m.events = m.changed(Event{Kind: Ended, Session: c.Session})
}

// applyAttach creates a session or moves one to a new connection. Only creating a
// session is a transaction.
func (m *Machine) applyAttach(server uint8, c *command.Command) {
	m.out.Op = proto.OpCreateSession
	if c.Session == 0 {
		m.attached = m.Sessions.Create(server, c.Timeout, c.Password)
		if m.Mirror.Phase == mirrored.Open {
			m.attached.Password = zktxn.Password(m.attached.ID)
			m.Sessions.Put(m.attached)
		}
		m.out.Session = m.attached.ID
		m.advance(c)
		m.rec.session(&m.attached)
	} else {
		old, _ := m.Sessions.Get(c.Session)
		row, ok := m.Sessions.Attach(c.Session, c.Password[:], c.Timeout, server)
		if !ok {
			m.out.Code = proto.ErrSessionExpired
			return
		}
		m.Rows ^= rowDigest(old)
		m.attached = row
	}
	m.Rows ^= rowDigest(m.attached)
	m.out.Attached = &m.attached
	m.events = m.changed(attachedEvent(m.attached))
}

// applyReap deletes a container or TTL znode, unless it has changed since the leader
// looked at it.
func (m *Machine) applyReap(c *command.Command) error {
	r := proto.AliasReader(c.Body)
	m.reap.Decode(&r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	m.out.Op, m.out.Body = proto.OpDeleteContainer, nil
	m.ran(m.Tree.Apply(m.begin(c), proto.OpDeleteContainer, &m.reap))
	m.rec.result(c, m.out.Result)
	return nil
}

// changed appends e to the events if this server leads. Only the leader tracks
// deadlines.
func (m *Machine) changed(e Event) []Event {
	if !m.Own(m.Incarnation) {
		return m.events
	}
	return append(m.events, e)
}

// tooNew returns the error with which a server stops at an entry or a snapshot of a
// newer version.
func (e *Environment) tooNew(asked uint32) error {
	return fmt.Errorf("it needs behaviour level %d, this server knows %d: run the version of the servers that wrote it, or a newer one", asked, e.Newest)
}

// applyRaise applies the leader's decision that all servers know a level.
func (m *Machine) applyRaise(c *command.Command) error {
	if len(c.Body) != 4 {
		return errors.New("a level that does not have 4 bytes")
	}
	to := binary.BigEndian.Uint32(c.Body)
	if to > m.Newest {
		return m.tooNew(to)
	}
	if to > m.Level {
		m.Log.Info("all servers support a newer version of the log: using it from now on", "version", to)
		m.Level = to
	}
	return nil
}

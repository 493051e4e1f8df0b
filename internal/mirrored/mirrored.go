package mirrored

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Phase is how far a mirror has come.
type Phase uint8

// The phases.
const (
	None      Phase = iota // there is no mirror
	Following              // the state belongs to another ensemble
	Open                   // the servers have taken over, and can give back
	Fenced                 // they have given back
	Done                   // they have taken over permanently
	phaseEnd               // one past the last
)

// String returns the phase's name.
func (p Phase) String() string {
	switch p {
	case None:
		return "none"
	case Following:
		return "following"
	case Open:
		return "open"
	case Fenced:
		return "fenced"
	case Done:
		return "done"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Sessions is the first byte of the ids of sessions that begin while the state follows another
// ensemble. No server of that ensemble may have it as its id.
const Sessions = 0x7e

// ErrPhase reports that a command of a mirror had no effect, because the mirror is in another
// phase, is broken, or has another zxid.
var ErrPhase = errors.New("the mirror has changed in the meantime")

// State is the mirror in the replicated state.
type State struct {
	Phase  Phase
	Broken string // why no more transactions are applied; "" while the mirror is intact
	Zxid   int64  // the ensemble's newest transaction, once the servers have taken over
	Cxid   int32  // counts what clients have wanted from the ensemble
}

// Rests reports whether only the other ensemble may change the state, or nothing may.
func (s *State) Rests() bool { return s.Phase == Following || s.Phase == Fenced }

// AppendTo appends the encoding of s: nothing without a mirror.
func (s *State) AppendTo(b []byte) []byte {
	if *s == (State{}) {
		return b
	}
	b = append(b, byte(s.Phase))
	b = proto.AppendLong(b, s.Zxid)
	b = proto.AppendInt(b, s.Cxid)
	return proto.AppendString(b, s.Broken)
}

// Decode reads the encoding of a State, the whole of b.
func (s *State) Decode(b []byte) error {
	*s = State{}
	if len(b) == 0 {
		return nil
	}
	s.Phase = Phase(b[0])
	d := proto.NewReader(b[1:])
	s.Zxid, s.Cxid, s.Broken = d.Long(), d.Int(), d.String()
	switch {
	case d.Err() != nil:
		return fmt.Errorf("mirror: %w", d.Err())
	case d.Len() > 0:
		return fmt.Errorf("mirror: %d bytes too many", d.Len())
	case s.Phase >= phaseEnd:
		return fmt.Errorf("mirror: %v", s.Phase)
	}
	return nil
}

// Source is what kind of server the state comes from.
type Source int32

// The sources.
const (
	ZooKeeper Source = iota
	Zkgo             // a zkgo server
	Mirror           // a zkgo server that mirrors another ensemble itself
	sourceEnd        // one past the last
)

// Mark is the last message of the ensemble's leader, as the servers' leader received it.
type Mark struct {
	Proposed int64  // the newest zxid that the ensemble's leader has proposed
	Time     int64  // of the servers' leader, in milliseconds since the Unix epoch
	InSync   bool   // the servers' leader is connected to it and has had all of its state
	Leader   string // its address
	Source   Source // the kind of its servers
	Answer   Answer
}

// Answer is the outcome of a client's request that no transaction answers: a sync that the ensemble
// has answered, or a request that it rejected. The zero value is none.
type Answer struct {
	Session int64
	Cxid    int32
	Code    proto.Code // ErrSessionMoved closes the client
}

// Append appends the encoding of m.
func (m *Mark) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(m.Proposed))
	b = binary.BigEndian.AppendUint64(b, uint64(m.Time))
	b = proto.AppendBool(b, m.InSync)
	b = proto.AppendInt(b, int32(m.Source))
	b = proto.AppendLong(b, m.Answer.Session)
	b = proto.AppendInt(b, m.Answer.Cxid)
	b = proto.AppendInt(b, int32(m.Answer.Code))
	return proto.AppendString(b, m.Leader)
}

// Decode reads the encoding of a Mark.
func (m *Mark) Decode(b []byte) error {
	d := proto.NewReader(b)
	*m = Mark{
		Proposed: d.Long(), Time: d.Long(), InSync: d.Bool(), Source: Source(d.Int()),
		Answer: Answer{d.Long(), d.Int(), proto.Code(d.Int())}, Leader: d.String(),
	}
	if d.Err() == nil && (m.Source < 0 || m.Source >= sourceEnd) {
		return fmt.Errorf("mirror: source %d", m.Source)
	}
	return d.Err()
}

// Forward is a client's request to the ensemble.
type Forward struct {
	Session int64
	Timeout int32    // milliseconds, of OpCreateSession and of an attach
	Cxid    int32    // 0 for an attach
	Op      proto.Op // OpCreateSession with Cxid 0 for an attach
	Body    []byte   // of the request
	IDs     []proto.ID
}

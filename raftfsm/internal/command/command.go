package command

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Kind is the kind of a Command.
type Kind uint8

// The kinds of command that a server proposes.
const (
	KindRequest Kind = iota + 1 // a client's write, Op and Body
	KindAttach                  // create a session (Session 0) or attach to one
	KindSync                    // no effect, no zxid: orders later reads after everything committed
)

// Command is an operation that a server proposes to the ensemble. Propose copies its
// input, so the caller may reuse Body, IDs and Prints after it returns.
type Command struct {
	Kind    Kind
	Session int64      // 0 in KindAttach: a new session
	Gen     uint64     // the session generation that this connection attached with
	IDs     []proto.ID // the connection's identities, at most 32,767
	Op      proto.Op
	Body    []byte // the request as the client sent it, without its header; known to decode

	// Prints are the sorted fingerprints of the identities that are not in IDs. For a
	// reconfig and for a request with the scheme auth in an ACL, IDs has all identities.
	Prints []tree.Fingerprint

	Password [proto.PasswordSize]byte // KindAttach: the client's, or 16 random bytes for a new session
	Timeout  int32                    // KindAttach: negotiated, milliseconds

	// Waiter receives the outcome when this server applies the command; nil: nothing waits.
	Waiter Waiter

	// Way ties together the commands of one connection, because a command may
	// depend on an earlier command. Propose sets it, and the caller passes it in
	// the next command. Propose refuses that command if commands in flight have
	// been lost in between. The first command has 0.
	Way uint64
}

// The kinds of command that the leader itself proposes.
const (
	// KindExpire ends the session of a client that has timed out. It has no effect if the
	// client has attached again in the meantime.
	KindExpire Kind = iota + KindSync + 1
	// KindReap deletes an empty container or an expired TTL znode.
	KindReap
	// KindReconfigRefused is a client's reconfig that the leader refused for a reason
	// that the other servers can't derive from the log.
	KindReconfigRefused
	// KindRaise raises the behaviour level of the log.
	KindRaise
	// KindMembership changes the membership to match the configuration files or the new
	// address of a server that moved.
	KindMembership
	// KindReconfigDone reports a change of membership that no client asked for. It isn't
	// a command.
	KindReconfigDone
	// KindRestoreBegin, KindRestoreChunk, KindRestoreCommit and KindRestoreAbort replace
	// the state (apply/statetransfer.go).
	KindRestoreBegin
	KindRestoreChunk
	KindRestoreCommit
	KindRestoreAbort
	// KindRestoreSessions is a piece of the session table of a state that keeps its
	// sessions.
	KindRestoreSessions
	// KindMirrorBegin is the last command of such a state. The state comes from an
	// Apache ZooKeeper ensemble, which the servers follow from then on. KindMirrorTxns
	// are transactions of that ensemble, KindMirrorMark says how far its leader has
	// proposed, KindMirrorEnd replaces it by our servers, and KindMirrorPhase changes
	// the phase after that (apply/mirror.go).
	KindMirrorBegin
	KindMirrorTxns
	KindMirrorMark
	KindMirrorEnd
	KindMirrorPhase

	kindEnd // one more than the last kind
)

// commandMin is the minimum length of an encoded command in bytes.
const commandMin = 1 + 8 + 8 + 4 + 4 + 4

// attachSize is the length of the body of a KindAttach.
const attachSize = 4 + proto.PasswordSize

// ErrUnknownCommand reports a command of a kind that is not in the log.
var ErrUnknownCommand = errors.New("command of unknown kind")

// Append appends the encoding of c:
//
//	command = kind:1 session:8 gen:8 op:4 ids body
//	ids     = prints:2 count:2 (scheme id)* (print:16)*     jute strings
//	body    = jute buffer              KindAttach: timeout:4 password:16
//
// Encoding the body is the only time that the client's bytes are copied.
func (c *Command) Append(b []byte) []byte {
	b = append(b, byte(c.Kind))
	b = proto.AppendLong(b, c.Session)
	b = proto.AppendLong(b, int64(c.Gen))
	b = proto.AppendInt(b, int32(c.Op))
	b = proto.AppendInt(b, int32(len(c.Prints)<<16|len(c.IDs)))
	for i := range c.IDs {
		b = proto.AppendString(b, c.IDs[i].Scheme)
		b = proto.AppendString(b, c.IDs[i].ID)
	}
	for i := range c.Prints {
		b = append(b, c.Prints[i][:]...)
	}
	if c.Kind != KindAttach {
		return proto.AppendBuffer(b, c.Body)
	}
	b = proto.AppendInt(b, attachSize)
	b = proto.AppendInt(b, c.Timeout)
	return append(b, c.Password[:]...)
}

// Size returns an upper bound for the length of c's encoding.
func (c *Command) Size() int {
	n := commandMin + len(c.Body) + attachSize + len(c.Prints)*len(tree.Fingerprint{})
	for i := range c.IDs {
		n += 8 + len(c.IDs[i].Scheme) + len(c.IDs[i].ID)
	}
	return n
}

// Decode reads c from the start of b and returns the remaining bytes. c aliases b. Decode
// reuses the capacity of c.IDs and c.Prints.
func (c *Command) Decode(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, errShortEntry
	}
	c.Kind = Kind(b[0])
	if c.Kind < KindRequest || c.Kind >= kindEnd {
		return nil, fmt.Errorf("%w: %d", ErrUnknownCommand, c.Kind)
	}
	r := proto.AliasReader(b[1:])
	c.Session = r.Long()
	c.Gen = uint64(r.Long())
	c.Op = proto.Op(r.Int())
	c.decodeIDs(&r)
	c.Body = r.Buffer()
	if c.Kind == KindAttach {
		c.decodeAttach()
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if c.Kind == KindAttach && c.Body != nil {
		return nil, fmt.Errorf("attach with a body of %d bytes", len(c.Body))
	}
	return r.Rest(), nil
}

// decodeIDs reads the identities.
func (c *Command) decodeIDs(r *proto.Reader) {
	n := uint32(r.Int())
	ids, prints := int(n&0xffff), int(n>>16)
	if 8*ids+len(tree.Fingerprint{})*prints > len(r.Rest()) {
		r.Fail(fmt.Errorf("%d identities and %d fingerprints in %d bytes: %w", ids, prints, len(r.Rest()), errShortEntry))
	}
	c.IDs, c.Prints = c.IDs[:0], c.Prints[:0]
	for i := 0; i < ids && r.Err() == nil; i++ {
		c.IDs = append(c.IDs, proto.ID{Scheme: r.String(), ID: r.String()})
	}
	for i := 0; i < prints && r.Err() == nil; i++ {
		var print tree.Fingerprint
		binary.BigEndian.PutUint64(print[:], uint64(r.Long()))
		binary.BigEndian.PutUint64(print[8:], uint64(r.Long()))
		c.Prints = append(c.Prints, print)
	}
}

// decodeAttach decodes the body of a KindAttach. It leaves a body of the wrong length in
// c.Body.
func (c *Command) decodeAttach() {
	if len(c.Body) != attachSize {
		if c.Body == nil {
			c.Body = []byte{}
		}
		return
	}
	r := proto.AliasReader(c.Body)
	c.Timeout = r.Int()
	copy(c.Password[:], r.Rest())
	c.Body = nil
}

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case KindRequest:
		return "request"
	case KindAttach:
		return "attach"
	case KindSync:
		return "sync"
	case KindExpire:
		return "expire"
	case KindReap:
		return "reap"
	case KindReconfigRefused:
		return "reconfigRefused"
	case KindRaise:
		return "raise"
	case KindMembership:
		return "membership"
	case KindReconfigDone:
		return "reconfigDone"
	case KindRestoreBegin:
		return "restoreBegin"
	case KindRestoreChunk:
		return "restoreChunk"
	case KindRestoreCommit:
		return "restoreCommit"
	case KindRestoreAbort:
		return "restoreAbort"
	case KindRestoreSessions:
		return "restoreSessions"
	case KindMirrorBegin:
		return "mirrorBegin"
	case KindMirrorTxns:
		return "mirrorTxns"
	case KindMirrorMark:
		return "mirrorMark"
	case KindMirrorEnd:
		return "mirrorEnd"
	case KindMirrorPhase:
		return "mirrorPhase"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Path returns the path of a request for one znode. For a multi, the tree prefetches
// itself.
func (c *Command) Path() string {
	if c.Kind != KindRequest || c.Op.Kind() != proto.Write || !c.Op.HasPath() {
		return ""
	}
	return proto.LeadingPath(c.Body)
}

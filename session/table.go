package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// Session is one row of the replicated table.
type Session struct {
	ID       int64
	Timeout  int32 // milliseconds, as negotiated by the last attach
	Password [proto.PasswordSize]byte
	Gen      uint64 // raised by every attach
	Server   uint8  // id of the server it is attached to
}

// counterBits is the width of the counter below the server's id in a session id.
const counterBits = 56

// Table is the replicated table of sessions. It is not safe for concurrent use: the code
// that applies the log serializes access.
type Table struct {
	rows map[int64]Session
	last uint64 // the counter of the newest id
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{rows: make(map[int64]Session)} }

// Create adds a session owned by server. Its id is server<<56 | counter. The counter is
// in the table. ZooKeeper starts from the clock instead, but a clock could repeat.
func (t *Table) Create(server uint8, timeout int32, password [proto.PasswordSize]byte) Session {
	id := t.nextID(server)
	s := Session{ID: id, Timeout: timeout, Password: password, Gen: 1, Server: server}
	t.rows[id] = s
	return s
}

// Put adds a session that Create didn't make, or replaces the session with its id.
func (t *Table) Put(s Session) { t.rows[s.ID] = s }

// Skip raises the counter for new ids to at least the low 56 bits of counter. We need it
// when sessions that the table doesn't know may have ids up to there.
func (t *Table) Skip(counter uint64) { t.last = max(t.last, counter&(1<<counterBits-1)) }

// Counter returns the part of a session's id that comes from a counter or, in
// ZooKeeper, from a clock. It can be passed to Skip.
func Counter(id int64) uint64 { return uint64(id) & (1<<counterBits - 1) }

// The session ids of server 255 have the same top byte as the owners of znodes with a time
// to live. Those owners have two zero bytes after it, so the counters of server 255 start
// above them.
const (
	timeToLiveServer = 0xff
	aboveTimeToLive  = 1 << 40
)

// nextID returns an id that no session has had and that doesn't mark a container or a time
// to live. It skips ids in use: an imported session may have an id that the counter hasn't
// reached yet.
func (t *Table) nextID(server uint8) int64 {
	if server == timeToLiveServer {
		t.last = max(t.last, aboveTimeToLive)
	}
	for {
		t.last = (t.last + 1) & (1<<counterBits - 1)
		id := int64(uint64(server)<<counterBits | t.last)
		if _, taken := t.rows[id]; !taken && t.last != 0 {
			return id
		}
	}
}

// Attach moves a session to a new connection at server: its generation rises and
// its timeout becomes the one just negotiated. Attach reports false, and changes
// nothing, if there is no such session or the password is wrong.
func (t *Table) Attach(id int64, password []byte, timeout int32, server uint8) (Session, bool) {
	s, ok := t.rows[id]
	if !ok || !bytes.Equal(s.Password[:], password) {
		return Session{}, false
	}
	s.Gen++
	s.Timeout = timeout
	s.Server = server
	t.rows[id] = s
	return s, true
}

// Check returns Ok if a command of generation gen may act for session id. It returns
// ErrSessionExpired if there is no such session, and ErrSessionMoved if the client
// has attached through another connection since.
func (t *Table) Check(id int64, gen uint64) proto.Code {
	s, ok := t.rows[id]
	switch {
	case !ok:
		return proto.ErrSessionExpired
	case s.Gen != gen:
		return proto.ErrSessionMoved
	}
	return proto.Ok
}

// Get returns the session with the given id.
func (t *Table) Get(id int64) (Session, bool) {
	s, ok := t.rows[id]
	return s, ok
}

// Remove ends a session. It reports whether the session existed.
func (t *Table) Remove(id int64) bool {
	_, ok := t.rows[id]
	delete(t.rows, id)
	return ok
}

// Clear ends all sessions. Ids keep rising, so none is reused.
func (t *Table) Clear() { clear(t.rows) }

// Len returns the number of sessions.
func (t *Table) Len() int { return len(t.rows) }

// All yields the sessions in order of their ids.
func (t *Table) All(yield func(Session) bool) {
	ids := make([]int64, 0, len(t.rows))
	for id := range t.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if !yield(t.rows[id]) {
			return
		}
	}
}

// Clone returns a copy that later changes of t don't affect.
func (t *Table) Clone() *Table {
	c := &Table{rows: make(map[int64]Session, len(t.rows)), last: t.last}
	for id, s := range t.rows {
		c.rows[id] = s
	}
	return c
}

// rowSize is the length of an encoded Session in bytes.
const rowSize = 8 + 4 + proto.PasswordSize + 8 + 1

// AppendTo appends the encoding of t to b: the counter, the number of sessions,
// and the sessions in order of their ids. Equal tables have equal encodings.
func (t *Table) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, t.last)
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.rows)))
	for s := range t.All {
		b = binary.BigEndian.AppendUint64(b, uint64(s.ID))
		b = binary.BigEndian.AppendUint32(b, uint32(s.Timeout))
		b = append(b, s.Password[:]...)
		b = binary.BigEndian.AppendUint64(b, s.Gen)
		b = append(b, s.Server)
	}
	return b
}

// DecodeFrom replaces the content of t with the encoding at the start of b and
// returns the rest of b. On an error t is unchanged.
func (t *Table) DecodeFrom(b []byte) ([]byte, error) {
	if len(b) < 12 {
		return nil, fmt.Errorf("session: table of %d bytes has no header", len(b))
	}
	last := binary.BigEndian.Uint64(b)
	n := int(binary.BigEndian.Uint32(b[8:]))
	b = b[12:]
	if last >= 1<<counterBits {
		return nil, fmt.Errorf("session: counter %#x of the table has more than %d bits", last, counterBits)
	}
	if n > len(b)/rowSize {
		return nil, fmt.Errorf("session: table of %d sessions with %d bytes left", n, len(b))
	}
	rows := make(map[int64]Session, n)
	for range n {
		s := decodeRow(b)
		if _, twice := rows[s.ID]; twice {
			return nil, fmt.Errorf("session: duplicate session 0x%x in the table", s.ID)
		}
		rows[s.ID] = s
		b = b[rowSize:]
	}
	t.rows, t.last = rows, last
	return b, nil
}

// decodeRow reads one Session from the start of b, which is long enough.
func decodeRow(b []byte) Session {
	s := Session{ID: int64(binary.BigEndian.Uint64(b)), Timeout: int32(binary.BigEndian.Uint32(b[8:]))}
	b = b[12:]
	copy(s.Password[:], b)
	b = b[proto.PasswordSize:]
	s.Gen = binary.BigEndian.Uint64(b)
	s.Server = b[8]
	return s
}

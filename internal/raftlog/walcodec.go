package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
)

// codec encodes an entry in a segment:
//
//	index 8 | term 8 | appended at, Unix ns, 0 for none 8 | type 1 | extension length 1 | extensions | data
//
// Unlike the library's codec it can't panic on damaged bytes, it encodes into a reused
// buffer, and the entries that it decodes share the bytes that were read for them.
type codec struct{ room room }

var _ raftwal.Codec = (*codec)(nil)

// room is memory for the entries of one append. It is free again after the append has
// returned, because the segment has a copy. The appending goroutine owns it.
type room struct{ b []byte }

// maxRoom is the largest buffer that is kept for reuse.
const maxRoom = 1 << 20

// empty releases the buffer after an append.
func (r *room) empty() {
	r.b = r.b[:0]
	if cap(r.b) > maxRoom {
		r.b = nil
	}
}

// part returns an empty slice with capacity for n bytes.
func (r *room) part(n int) []byte {
	at := len(r.b)
	if at+n > cap(r.b) {
		r.b, at = make([]byte, 0, max(n, 2*cap(r.b))), 0 // earlier parts stay in the old buffer
	}
	r.b = r.b[:at+n]
	return r.b[at : at : at+n]
}

const codecHead = 8 + 8 + 8 + 1 + 1

// ID implements raftwal.Codec.
func (*codec) ID() uint64 { return raftwal.FirstExternalCodecID + 0x7a6b }

// Encode implements raftwal.Codec. raft-wal passes a new bytes.Buffer for every entry,
// which gets its memory here.
func (c *codec) Encode(l *raft.Log, w io.Writer) error {
	if len(l.Extensions) > 0xff {
		return errors.New("log extensions too long")
	}
	if b, ok := w.(*bytes.Buffer); ok && b.Cap() == 0 {
		*b = *bytes.NewBuffer(c.room.part(codecHead + len(l.Extensions) + len(l.Data)))
	}
	var head [codecHead]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	if !l.AppendedAt.IsZero() {
		binary.LittleEndian.PutUint64(head[16:], uint64(l.AppendedAt.UnixNano()))
	}
	head[24] = byte(l.Type)
	head[25] = byte(len(l.Extensions))
	for _, p := range [][]byte{head[:], l.Extensions, l.Data} {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// Decode implements raftwal.Codec. It keeps b, which a segment's GetLog allocates for
// every call.
func (*codec) Decode(b []byte, l *raft.Log) error {
	if len(b) < codecHead || len(b) < codecHead+int(b[25]) {
		return io.ErrUnexpectedEOF
	}
	ext := codecHead + int(b[25])
	*l = raft.Log{
		Index:      binary.LittleEndian.Uint64(b[0:]),
		Term:       binary.LittleEndian.Uint64(b[8:]),
		Type:       raft.LogType(b[24]),
		Extensions: b[codecHead:ext:ext],
	}
	if len(b) > ext {
		l.Data = b[ext:]
	}
	if ns := binary.LittleEndian.Uint64(b[16:]); ns != 0 {
		l.AppendedAt = time.Unix(0, int64(ns))
	}
	return nil
}

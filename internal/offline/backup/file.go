package backup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// The layout of a file:
//
//	file   = "zkgobak1" header data* end
//	record = type:1 size:4 crc:4 payload
//
// The CRC32C of a record covers its type and payload. The seed is the previous record's CRC32C, so
// that we detect a lost, repeated or moved record. Header and end are JSON; the payloads of all
// data records form one gzip stream with the snapshot. All integers are big-endian.

const (
	magic      = "zkgobak1" // the last character is the version
	recordHead = 1 + 4 + 4
	dataSize   = 256 << 10
	maxText    = 1 << 20 // of a header or an end

	typeHeader = 'H'
	typeData   = 'D'
	typeEnd    = 'E'
)

// Header describes the origin of a backup. Unknown fields are empty.
type Header struct {
	Taken   time.Time `json:"taken"`             // when the backup was requested, by the requester's clock
	Source  string    `json:"source"`            // URL of the AdminServer
	Server  string    `json:"server,omitempty"`  // the server's version
	State   string    `json:"state,omitempty"`   // leader, follower, observer, standalone
	Zxid    string    `json:"zxid"`              // as announced by the source, 0x…
	Created string    `json:"created,omitempty"` // the program that wrote the file
}

// End contains the facts that we know only after we have written the snapshot.
type End struct {
	Bytes int64  `json:"bytes"` // of the snapshot, uncompressed
	Sum   uint32 `json:"sum"`   // CRC32C of the snapshot
}

// recordWriter writes records.
type recordWriter struct {
	w   io.Writer
	buf []byte
	crc uint32
}

func (r *recordWriter) write(typ byte, payload []byte) error {
	r.crc = recordSum(r.crc, typ, payload)
	r.buf = append(r.buf[:0], typ)
	r.buf = binary.BigEndian.AppendUint32(r.buf, uint32(len(payload)))
	r.buf = binary.BigEndian.AppendUint32(r.buf, r.crc)
	r.buf = append(r.buf, payload...)
	_, err := r.w.Write(r.buf)
	return err
}

func (r *recordWriter) text(typ byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return r.write(typ, b)
}

func recordSum(crc uint32, typ byte, payload []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once by the library
	return crc32.Update(crc32.Update(crc, table, []byte{typ}), table, payload)
}

// dataWriter splits a stream into records.
type dataWriter struct {
	r   *recordWriter
	buf []byte
}

// Write implements io.Writer.
func (d *dataWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), dataSize-len(d.buf))
		d.buf, p = append(d.buf, p[:k]...), p[k:]
		if len(d.buf) == dataSize {
			if err := d.flush(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

func (d *dataWriter) flush() error {
	if len(d.buf) == 0 {
		return nil
	}
	err := d.r.write(typeData, d.buf)
	d.buf = d.buf[:0]
	return err
}

// recordReader reads records. Its errors contain the offset.
type recordReader struct {
	r   io.Reader
	crc uint32
	off int64
}

var errCut = errors.New("unexpected end of the file, without the end mark: the backup was cut off")

// next returns the next record.
func (r *recordReader) next() (typ byte, payload []byte, err error) {
	var head [recordHead]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, r.fail(err)
	}
	typ = head[0]
	size := binary.BigEndian.Uint32(head[1:])
	limit := uint32(maxText)
	if typ == typeData {
		limit = dataSize
	}
	switch {
	case typ != typeHeader && typ != typeData && typ != typeEnd:
		return 0, nil, r.fail(fmt.Errorf("a record of unknown type %q", typ))
	case size > limit:
		return 0, nil, r.fail(fmt.Errorf("a record of %d bytes", size))
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r.r, payload); err != nil {
		return 0, nil, r.fail(err)
	}
	r.crc = recordSum(r.crc, typ, payload)
	if want := binary.BigEndian.Uint32(head[5:]); r.crc != want {
		return 0, nil, r.fail(fmt.Errorf("damaged: checksum %08x instead of %08x", r.crc, want))
	}
	r.off += recordHead + int64(size)
	return typ, payload, nil
}

func (r *recordReader) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCut
	}
	return fmt.Errorf("at offset %d: %w", r.off, err)
}

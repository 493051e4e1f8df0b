package arena

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"
)

// Text is the path, the kind, the owner and the data of a znode in one allocation
// that never changes: new data makes a new text. Path and data share an allocation
// because two allocations per znode would cost more than copying the path with
// every change of the data: in bytes that the allocator rounds up, in objects for
// the garbage collector to mark, and in cache misses of a read.
//
//	text = crc:4 pathLen:4 kind:1 owner:8 path data     persistent znodes have no owner
//
// The crc covers path and data: the part of the digest that a change of the stat
// doesn't affect.
type Text struct {
	first   *byte // nil: no text
	size    int32 // length of the data, −1 for null
	Version int32 // of the data; here because it fills the padding
}

// Root is the path of the root.
const Root = "/"

const (
	textFixed = 4 + 4 + 1
	textOwner = 8
)

// NewText copies path and data. A persistent znode has the owner 0.
func NewText(k Kind, owner int64, path string, data []byte) Text {
	start := textFixed
	if k != Persistent {
		start += textOwner
	}
	b := make([]byte, start+len(path)+len(data))
	le := binary.LittleEndian
	le.PutUint32(b[4:], uint32(len(path)))
	b[8] = byte(k)
	if k != Persistent {
		le.PutUint64(b[textFixed:], uint64(owner))
	}
	copy(b[start:], path)
	copy(b[start+len(path):], data)
	if path == Root {
		start += len(Root) // the checksum treats it as ""
	}
	le.PutUint32(b, crc32.ChecksumIEEE(b[start:]))
	size := int32(len(data))
	if data == nil {
		size = -1
	}
	return Text{first: unsafe.SliceData(b), size: size}
}

// TextCRC returns the checksum of a text with path and data.
func TextCRC(path string, data []byte) uint32 {
	crc := uint32(0)
	if path != Root {
		crc = crc32.Update(0, crc32.IEEETable, Bytes(path))
	}
	return crc32.Update(crc, crc32.IEEETable, data)
}

// Rewrite replaces the data with a copy of data, which gets that version.
func (t *Text) Rewrite(data []byte, version int32) {
	*t = NewText(t.Kind(), t.Owner(), t.Path(), data)
	t.Version = version
}

// Glance reads a byte at the start and a byte near the end of the text. The exact end
// isn't known before the text is read, because the length of the path is in the text.
func (t *Text) Glance() byte {
	return *t.first ^ *(*byte)(unsafe.Add(unsafe.Pointer(t.first), textFixed+max(0, t.size)))
}

func (t *Text) header() []byte { return unsafe.Slice(t.first, textFixed+textOwner) }

// CRC returns the checksum of path and data.
func (t *Text) CRC() uint32 { return binary.LittleEndian.Uint32(unsafe.Slice(t.first, textFixed)) }

func (t *Text) pathLen() int {
	return int(binary.LittleEndian.Uint32(unsafe.Slice(t.first, textFixed)[4:]))
}

// Kind returns the kind of the znode.
func (t *Text) Kind() Kind { return Kind(unsafe.Slice(t.first, textFixed)[8]) }

// Owner returns the owner as ZooKeeper stores it.
func (t *Text) Owner() int64 {
	if t.Kind() == Persistent {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(t.header()[textFixed:]))
}

// start returns the offset of the path.
func (t *Text) start() int {
	if t.Kind() == Persistent {
		return textFixed
	}
	return textFixed + textOwner
}

// Path returns the path. It is part of the text and keeps it alive.
func (t *Text) Path() string {
	if t.first == nil {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(t.first), t.start())), t.pathLen())
}

// Data returns the data, which is part of the text; nil for null.
func (t *Text) Data() []byte {
	if t.size <= 0 {
		if t.size < 0 {
			return nil
		}
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(t.first), t.start()+t.pathLen())), t.size)
}

// IsNull reports whether the data is null, which a client can tell from empty data.
func (t *Text) IsNull() bool { return t.size < 0 }

// DataLen returns the length that a Stat shows: 0 for null, too.
func (t *Text) DataLen() int64 { return int64(max(t.size, 0)) }

// Bytes returns the bytes of s, which must not be changed.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// View returns b as a string that is valid until b changes.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

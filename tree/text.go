package tree

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"
)

// text is the path, the kind, the owner and the data of a znode in one allocation that
// never changes: new data makes a new text. We put path and data into one allocation
// because two per znode would cost more than copying the path with every change of the
// data: more bytes lost to rounding, more objects for the garbage collector to mark, and
// more cache misses per read.
//
//	text = crc:4 pathLen:4 kind:1 owner:8 path data     persistent znodes have no owner
//
// The crc covers path and data: the part of the digest that a change of the stat
// doesn't affect.
type text struct {
	first   *byte // nil: no text
	size    int32 // length of the data, −1 for null
	version int32 // of the data; here because it fills the padding
}

const (
	textFixed = 4 + 4 + 1
	textOwner = 8
)

// newText copies path and data. A persistent znode has the owner 0.
func newText(k kind, owner int64, path string, data []byte) text {
	start := textFixed
	if k != persistent {
		start += textOwner
	}
	b := make([]byte, start+len(path)+len(data))
	le := binary.LittleEndian
	le.PutUint32(b[4:], uint32(len(path)))
	b[8] = byte(k)
	if k != persistent {
		le.PutUint64(b[textFixed:], uint64(owner))
	}
	copy(b[start:], path)
	copy(b[start+len(path):], data)
	if path == rootPath {
		start += len(rootPath) // the checksum treats it as ""
	}
	le.PutUint32(b, crc32.ChecksumIEEE(b[start:]))
	size := int32(len(data))
	if data == nil {
		size = -1
	}
	return text{first: unsafe.SliceData(b), size: size}
}

// textCRC returns the checksum of a text with path and data.
func textCRC(path string, data []byte) uint32 {
	crc := uint32(0)
	if path != rootPath {
		crc = crc32.Update(0, crc32.IEEETable, stringBytes(path))
	}
	return crc32.Update(crc, crc32.IEEETable, data)
}

// rewrite replaces the data with a copy of data, which gets that version.
func (t *text) rewrite(data []byte, version int32) {
	*t = newText(t.kind(), t.owner(), t.path(), data)
	t.version = version
}

// glance reads a byte at the start and a byte near the end of the text. We need both reads
// because only the text itself says how long its path is, and thus where it ends.
func (t *text) glance() byte {
	return *t.first ^ *(*byte)(unsafe.Add(unsafe.Pointer(t.first), textFixed+max(0, t.size)))
}

func (t *text) header() []byte { return unsafe.Slice(t.first, textFixed+textOwner) }

func (t *text) crc() uint32 { return binary.LittleEndian.Uint32(unsafe.Slice(t.first, textFixed)) }

func (t *text) pathLen() int {
	return int(binary.LittleEndian.Uint32(unsafe.Slice(t.first, textFixed)[4:]))
}

func (t *text) kind() kind { return kind(unsafe.Slice(t.first, textFixed)[8]) }

// owner returns the owner as ZooKeeper stores it; see kindOf.
func (t *text) owner() int64 {
	if t.kind() == persistent {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(t.header()[textFixed:]))
}

// start returns the offset of the path.
func (t *text) start() int {
	if t.kind() == persistent {
		return textFixed
	}
	return textFixed + textOwner
}

// path returns the path. It is part of the text and keeps it alive.
func (t *text) path() string {
	if t.first == nil {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(t.first), t.start())), t.pathLen())
}

// bytes returns the data, which is part of the text; nil for null.
func (t *text) bytes() []byte {
	if t.size <= 0 {
		if t.size < 0 {
			return nil
		}
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(t.first), t.start()+t.pathLen())), t.size)
}

// dataLen returns the length that a Stat shows: 0 for null, too.
func (t *text) dataLen() int64 { return int64(max(t.size, 0)) }

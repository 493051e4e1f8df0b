package tree

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"
)

// text is what a znode is called, what it is and what it holds, in one piece of
// memory that never changes: new data make a new text. Path and data share it
// because two allocations for each znode cost more of everything than to copy a
// path with every change of data: bytes that the allocator rounds up to, objects
// for the collector to mark, and cache misses of a read.
//
//	text = crc:4 pathLen:4 kind:1 owner:8 path data     owner: not of a persistent znode
//
// The crc covers path and data: the part of the digest that a change of the stat
// leaves alone.
type text struct {
	first   *byte // nil: no text
	size    int32 // length of the data, −1 for null
	version int32 // of the data; it stands here because there is room for it
}

const (
	textFixed = 4 + 4 + 1
	textOwner = 8
)

// newText copies everything. A persistent znode has the owner 0.
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
		start += len(rootPath) // which counts as ""
	}
	le.PutUint32(b, crc32.ChecksumIEEE(b[start:]))
	size := int32(len(data))
	if data == nil {
		size = -1
	}
	return text{first: unsafe.SliceData(b), size: size}
}

// textCRC is the checksum that a text of path and data has.
func textCRC(path string, data []byte) uint32 {
	crc := uint32(0)
	if path != rootPath {
		crc = crc32.Update(0, crc32.IEEETable, stringBytes(path))
	}
	return crc32.Update(crc, crc32.IEEETable, data)
}

// rewrite makes data, of which a copy is taken, the data of that version.
func (t *text) rewrite(data []byte, version int32) {
	*t = newText(t.kind(), t.owner(), t.path(), data)
	t.version = version
}

// glance is something of the beginning and of nearly the end of the text: how long the
// path is, and so where the end is, only the text knows.
func (t *text) glance() byte {
	return *t.first ^ *(*byte)(unsafe.Add(unsafe.Pointer(t.first), textFixed+max(0, t.size)))
}

func (t *text) header() []byte { return unsafe.Slice(t.first, textFixed+textOwner) }

func (t *text) crc() uint32 { return binary.LittleEndian.Uint32(unsafe.Slice(t.first, textFixed)) }

func (t *text) pathLen() int {
	return int(binary.LittleEndian.Uint32(unsafe.Slice(t.first, textFixed)[4:]))
}

func (t *text) kind() kind { return kind(unsafe.Slice(t.first, textFixed)[8]) }

// owner is the owner as ZooKeeper stores it, see kindOf.
func (t *text) owner() int64 {
	if t.kind() == persistent {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(t.header()[textFixed:]))
}

// start is where the path begins.
func (t *text) start() int {
	if t.kind() == persistent {
		return textFixed
	}
	return textFixed + textOwner
}

// path is part of the text and keeps it alive.
func (t *text) path() string {
	if t.first == nil {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(t.first), t.start())), t.pathLen())
}

// bytes is the data, part of the text; nil for null.
func (t *text) bytes() []byte {
	if t.size <= 0 {
		if t.size < 0 {
			return nil
		}
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(t.first), t.start()+t.pathLen())), t.size)
}

// dataLen returns the length that a Stat shows: 0 also for null.
func (t *text) dataLen() int64 { return int64(max(t.size, 0)) }

package raftfsm

import (
	"encoding/binary"
	"unsafe"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// lookAhead has the tree fetch the znodes of the next n commands, at most
// tree.PrefetchMax, of those at the start of b. What it cannot read is applied, and
// refused, when its turn comes. The tree is locked.
func (m *machine) lookAhead(b []byte, n int) {
	paths := m.paths[:0]
	for range min(n, tree.PrefetchMax) {
		var err error
		if b, err = m.next.decode(b); err != nil {
			break
		}
		if path := m.next.path(); path != "" {
			paths = append(paths, path)
		}
	}
	if len(paths) > 1 {
		m.tree.Prefetch(paths)
	}
	clear(paths) // they are in the entry
	m.paths = paths
}

// path returns the path at the start of the body, which it aliases, of a request that
// begins with one. The tree looks ahead itself in a multi.
func (c *Command) path() string {
	if c.Kind != KindRequest || len(c.Body) < proto.LengthSize {
		return ""
	}
	switch c.Op {
	case proto.OpSetData, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetACL:
	default:
		return ""
	}
	n, rest := binary.BigEndian.Uint32(c.Body), c.Body[proto.LengthSize:]
	if n == 0 || uint64(n) > uint64(len(rest)) {
		return ""
	}
	return unsafe.String(&rest[0], n)
}

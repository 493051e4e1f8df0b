package raftfsm

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// lookAhead prefetches the znodes of the n commands at the start of b. It returns how many
// commands it covered, at least 1. It stops at a command that it can't decode; applying
// that command fails later. The caller holds the tree's lock.
func (m *machine) lookAhead(b []byte, n int) (ahead int) {
	paths := m.paths[:0]
	for ; ahead < n && len(paths) < tree.PrefetchMax; ahead++ {
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
	clear(paths) // don't keep the entry and the requests alive
	m.paths = paths
	return max(ahead, 1)
}

// path returns the path of a request for one znode. For a multi, the tree prefetches
// itself.
func (c *Command) path() string {
	if c.Kind != KindRequest {
		return ""
	}
	switch c.Op {
	case proto.OpSetData, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetACL:
		return proto.LeadingPath(c.Body)
	}
	return ""
}

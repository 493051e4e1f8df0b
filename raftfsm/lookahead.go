package raftfsm

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// lookAhead has the tree fetch the znodes of the next commands at the start of b, of
// which there are n with the waiters from the given one on, and of the reads that wait
// behind those. It returns for how many commands it has done so. What it cannot read is
// refused when its turn comes. The tree is locked.
func (m *machine) lookAhead(b []byte, n, waiter int) (ahead int) {
	behind := m.tree.NodeCount() >= tree.ManyNodes
	paths := m.paths[:0]
	for ; ahead < n && len(paths) < tree.PrefetchMax; ahead++ {
		var err error
		if b, err = m.next.decode(b); err != nil {
			break
		}
		if path := m.next.path(); path != "" {
			paths = append(paths, path)
		}
		if i := waiter + ahead; behind && i < len(m.waiters) && m.waiters[i] != nil {
			paths = m.handler.Behind(m.waiters[i], paths)
		}
	}
	if len(paths) > 1 {
		m.tree.Prefetch(paths)
	}
	clear(paths) // they are in the entry, and in requests
	m.paths = paths
	return max(ahead, 1)
}

// path is the path of a request for one znode. The tree looks ahead itself in a multi.
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

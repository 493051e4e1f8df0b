package server

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Where there are many znodes a request spends most of its time waiting for memory.
// Those that a client has sent together, and those that are answered behind the same
// entry of the log, wait together (tree.Prefetch).

// noteSize notes whether there are many znodes. It is called by the goroutine that
// applies the log.
func (s *Server) noteSize() {
	if many := s.tree.NodeCount() >= tree.ManyNodes; many != s.manyNodes.Load() {
		s.manyNodes.Store(many)
	}
}

// pathRead is the path of a read of one znode.
func pathRead(op proto.Op, body []byte) string {
	switch op {
	case proto.OpGetData, proto.OpExists, proto.OpGetChildren, proto.OpGetChildren2, proto.OpGetACL:
		return proto.LeadingPath(body)
	}
	return ""
}

// lookAhead has the tree fetch the znodes of the reads that have arrived and are
// answered at once: those before the first request of another kind, if nothing waits
// for the log. Others are fetched when their turn comes (Behind). It returns how many
// requests need not be looked at again for that, one at least.
func (c *conn) lookAhead(w *work) int {
	if c.waiting.Load() != 0 {
		return 1
	}
	const header = proto.LengthSize + 4 + 4 // of a frame: its length, xid and op
	var room [tree.PrefetchMax]string
	paths, ahead := room[:0], 0
	for b := c.unread(); len(b) >= header && len(paths) < tree.PrefetchMax; ahead++ {
		n := proto.LengthSize + uint64(binary.BigEndian.Uint32(b))
		if n < header || n > uint64(len(b)) {
			break
		}
		path := pathRead(proto.Op(binary.BigEndian.Uint32(b[header-4:])), b[header:n])
		if path == "" {
			break
		}
		paths, b = append(paths, path), b[n:]
	}
	if len(paths) > 1 {
		if !w.locked {
			c.s.tree.RLock()
			defer c.s.tree.RUnlock()
		}
		c.s.tree.Prefetch(paths)
	}
	return max(ahead, 1)
}

// Behind implements raftfsm.Handler.
func (h handler) Behind(waiter any, paths []string) []string {
	p, ok := waiter.(*pending)
	if !ok || p.c == nil {
		return paths
	}
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for p = p.next; p != nil && !p.inFlight && len(paths) < tree.PrefetchMax; p = p.next {
		if path := pathRead(p.op, p.body); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

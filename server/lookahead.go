package server

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// If there are many znodes, a request spends most of its time waiting for memory.
// Requests that a client sent together, and requests answered after the same log entry,
// wait for memory together (tree.Prefetch).

// noteSize records whether there are many znodes. The goroutine that applies the log
// calls it.
func (s *Server) noteSize() {
	if many := s.tree.NodeCount() >= tree.ManyNodes; many != s.manyNodes.Load() {
		s.manyNodes.Store(many)
	}
}

// pathRead returns the path of a read of one znode, "" for other requests.
func pathRead(op proto.Op, body []byte) string {
	switch op {
	case proto.OpGetData, proto.OpExists, proto.OpGetChildren, proto.OpGetChildren2, proto.OpGetACL:
		return proto.LeadingPath(body)
	}
	return ""
}

// lookAhead prefetches the znodes of the reads that have arrived and can be answered at
// once: those before the first request of another kind, if nothing waits for the log.
// Other znodes are prefetched when their turn comes (Behind). It returns how many
// requests it has covered, at least one.
func (c *conn) lookAhead(w *work) int {
	if c.waiting.Load() != 0 {
		return 1
	}
	const header = proto.LengthSize + 4 + 4 // of a frame: length, xid and op
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

package apply

import (
	"github.com/zkgo/zkgo/tree"
)

// prefetch prefetches the znodes of the n commands at the start of b. It returns how many
// commands it covered, at least 1. It stops at a command that it can't decode; applying
// that command fails later. The caller holds the tree's lock.
func (s *scratch) prefetch(t *tree.Tree, b []byte, n int) (ahead int) {
	paths := s.paths[:0]
	for ; ahead < n && len(paths) < tree.PrefetchMax; ahead++ {
		var err error
		if b, err = s.next.Decode(b); err != nil {
			break
		}
		if path := s.next.Path(); path != "" {
			paths = append(paths, path)
		}
	}
	if len(paths) > 1 {
		t.Prefetch(paths)
	}
	clear(paths) // don't keep the entry and the requests alive
	s.paths = paths
	return max(ahead, 1)
}

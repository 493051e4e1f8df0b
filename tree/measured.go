package tree

import "strings"

// measured keeps the usage of large subtrees that were measured for a new stats node, and
// follows the changes in them. Otherwise a multi that creates and deletes a stats node
// thousands of times would walk the subtree thousands of times, on every server.
//
// It changes no result, because it always equals the result of a walk. We don't keep
// totals for every subtree, because every znode would need memory for them.
type measured struct {
	subtrees map[string]*subtree // by path
	changes  int                 // since the last subtree was added
}

// subtree is the usage of a subtree.
type subtree struct {
	count int
	bytes int64
}

const (
	fewMeasured  = 256     // nodes up to which walking costs little
	maxMeasured  = 4096    // subtrees; that many large ones contain each other, so their paths are long
	keepMeasured = 1 << 20 // changes after which the subtrees are dropped
)

// measuredUsage is usage, without a walk if that was made before.
func (t *store) measuredUsage(n *node) (count int, bytes int64) {
	m := &t.measured
	if s := m.subtrees[n.Path()]; s != nil {
		return s.count, s.bytes
	}
	count, bytes = t.usage(n)
	if count <= fewMeasured {
		return count, bytes
	}
	if m.subtrees == nil || len(m.subtrees) == maxMeasured {
		m.subtrees = make(map[string]*subtree)
	}
	m.subtrees[strings.Clone(n.Path())], m.changes = &subtree{count, bytes}, 0
	return count, bytes
}

// follow adds to the usage of the subtrees that contain a path.
func (m *measured) follow(path string, count int, bytes int64) {
	if m.changes++; m.changes > keepMeasured {
		*m = measured{}
		return
	}
	if path != rootPath {
		for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
			m.change(path[:end], count, bytes)
		}
	}
	m.change(rootPath, count, bytes)
}

func (m *measured) change(path string, count int, bytes int64) {
	s := m.subtrees[path]
	if s == nil {
		return
	}
	s.count += count
	s.bytes += bytes
	if s.count < fewMeasured {
		delete(m.subtrees, path)
	}
}

package tree

import (
	"slices"
	"strings"

	"github.com/zkgo/zkgo/tree/internal/arena"
)

// EphemeralList collects the paths of a session's ephemeral znodes that start with a text.
// A list of one step is sorted. We don't sort a longer list, and neither does ZooKeeper:
// sorting tens of thousands of paths would block writes. The list is made in steps, so that
// the caller can release the tree's lock between them. If the session creates no znode in
// the meantime, Paths returns the znodes that exist when it is called.
type EphemeralList struct {
	t       *Tree
	of      *arena.Arena
	session int64
	prefix  string
	zxid    int64   // when the list was started
	rest    []*node // some may be deleted before they are visited, and their slots reused
	found   []*node // likewise
}

// ListEphemerals starts a list. The caller holds the lock.
func (t *Tree) ListEphemerals(session int64, prefix string) *EphemeralList {
	l := &EphemeralList{t: t, session: session, prefix: prefix}
	l.start()
	return l
}

func (l *EphemeralList) start() {
	set := l.t.ephemerals[l.session]
	l.of, l.zxid, l.rest, l.found = l.t.arena, l.t.zxid, make([]*node, 0, len(set)), nil
	for n := range set {
		l.rest = append(l.rest, n)
	}
}

// has reports whether a node of the list still exists.
func (l *EphemeralList) has(n *node) bool {
	return l.t.zxid == l.zxid || !n.IsVacant() && n.State().Czxid <= l.zxid
}

// Step visits more znodes and reports whether any are left. The caller holds the lock.
func (l *EphemeralList) Step() bool {
	if l.t.arena != l.of {
		l.start() // the whole content of the tree has been replaced
	}
	visit := l.rest[:min(censusStep, len(l.rest))]
	l.rest = l.rest[len(visit):]
	for _, n := range visit {
		if l.has(n) && strings.HasPrefix(n.Path(), l.prefix) {
			l.found = append(l.found, n)
		}
	}
	return len(l.rest) > 0
}

// Paths does the remaining steps and returns the paths. The caller holds the lock.
func (l *EphemeralList) Paths() []string {
	for l.t.arena != l.of || len(l.rest) > 0 {
		l.Step()
	}
	paths := make([]string, 0, len(l.found))
	for _, n := range l.found {
		if l.has(n) {
			paths = append(paths, n.Path())
		}
	}
	if len(paths) <= censusStep {
		slices.Sort(paths)
	}
	return paths
}

// EphemeralSessions returns the paths of the ephemeral znodes of every session that has
// any, in no particular order: a caller that wants them sorted should sort them without the
// lock.
func (t *Tree) EphemeralSessions() map[int64][]string {
	m := make(map[int64][]string, len(t.ephemerals))
	for session, nodes := range t.ephemerals {
		paths := make([]string, 0, len(nodes))
		for n := range nodes {
			paths = append(paths, n.Path())
		}
		m[session] = paths
	}
	return m
}

// EphemeralCount returns the number of ephemeral znodes.
func (t *Tree) EphemeralCount() int { return t.totals.ephemerals }

// closeSession removes the session's ephemeral znodes in the order of their paths:
// the order of a map would differ between servers.
func (t *exec) closeSession() {
	for _, n := range t.ephemerals[t.tx.Session].sorted() {
		t.remove(n)
	}
}

// sorted returns the nodes in the order of their paths.
func (s nodeSet) sorted() []*node {
	nodes := make([]*node, 0, len(s))
	for n := range s {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.Path(), b.Path()) })
	return nodes
}

package tree

import (
	"slices"
	"strings"
)

// Ephemerals returns the paths of a session's ephemeral znodes, sorted.
func (t *Tree) Ephemerals(session int64) []string {
	nodes := t.ephemerals[session].sorted()
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		paths[i] = n.path()
	}
	return paths
}

// EphemeralSessions returns the sorted paths of the ephemeral znodes of every
// session that has any.
func (t *Tree) EphemeralSessions() map[int64][]string {
	m := make(map[int64][]string, len(t.ephemerals))
	for session := range t.ephemerals {
		m[session] = t.Ephemerals(session)
	}
	return m
}

// EphemeralCount returns the number of ephemeral znodes.
func (t *Tree) EphemeralCount() int { return t.totals.ephemerals }

// closeSession removes the session's ephemeral znodes in the order of their paths:
// the order of a map would differ between servers.
func (t *Tree) closeSession(tx *Txn, events *[]Event) {
	for _, n := range t.ephemerals[tx.Session].sorted() {
		t.remove(tx, n, events)
	}
}

// sorted returns the nodes in the order of their paths.
func (s nodeSet) sorted() []*Node {
	nodes := make([]*Node, 0, len(s))
	for n := range s {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.path(), b.path()) })
	return nodes
}

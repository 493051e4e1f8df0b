package checkers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zkgo/zkgo/tests/kit/history"
)

// replicas checks that servers that have applied the same transactions have the same state.
func replicas(x *index, _ *Options, r *Result) {
	states := slices.Clone(x.h.States)
	slices.SortStableFunc(states, func(a, b *history.State) int { return cmp.Compare(a.Zxid, b.Zxid) })
	compared, final := 0, make(map[int]*history.State)
	for i, s := range states {
		if s.Final {
			final[s.Server] = s
		}
		for j := i - 1; j >= 0 && states[j].Zxid == s.Zxid; j-- {
			compared++
			if what := difference(states[j], s); what != "" {
				r.violation(x, []record{states[j], s}, "servers %d and %d differ at zxid %#x: %s", states[j].Server, s.Server, s.Zxid, what)
				break
			}
		}
	}
	r.count(len(states), "states")
	r.count(compared, "compared at one zxid")
	r.count(len(final), "servers at the end")
}

// difference describes where two states differ, or returns "" if they agree where
// both are known.
func difference(a, b *history.State) string {
	if a.Nodes != nil && b.Nodes != nil {
		if what := differentNodes(a.Nodes, b.Nodes); what != "" {
			return what
		}
	}
	if a.Live != nil && b.Live != nil && !slices.Equal(a.Live, b.Live) {
		return fmt.Sprintf("sessions %x and %x", a.Live, b.Live)
	}
	if a.Digest != "" && b.Digest != "" && a.Digest != b.Digest {
		return fmt.Sprintf("digests %s and %s", a.Digest, b.Digest)
	}
	return ""
}

// differentNodes names the first znode in which two sorted lists differ.
func differentNodes(a, b []history.Node) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("only the second has %s", b[i].Path)
		case i >= len(b):
			return fmt.Sprintf("only the first has %s", a[i].Path)
		case a[i] != b[i]:
			return fmt.Sprintf("%+v and %+v", a[i], b[i])
		}
	}
	return ""
}

package checkers

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/zkgo/zkgo/proto"
)

// numbered is a sequential znode that is known to have been created.
type numbered struct {
	number int64
	czxid  int64
	path   string
	rec    record
}

// sequences checks that, under one incarnation of a parent, a znode created later
// has the higher number, so that no number is ever used again.
func sequences(x *index, _ *Options, r *Result) {
	byParent := make(map[string][]numbered)
	n := 0
	for _, w := range x.writes {
		if !w.done() || w.kind != proto.OpCreate2 || !w.mode.Sequential() || len(w.path) < 10 {
			continue
		}
		number, err := strconv.ParseInt(w.path[len(w.path)-10:], 10, 64)
		if err != nil {
			r.violation(x, []record{w.op}, "%s: no number at the end of a sequential znode's name", w.path)
			continue
		}
		n++
		parent := proto.Parent(w.path)
		byParent[parent] = append(byParent[parent], numbered{number, w.zxid, w.path, w.op})
	}
	for _, parent := range slices.Sorted(maps.Keys(byParent)) {
		list := byParent[parent]
		slices.SortFunc(list, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.czxid, b.czxid), cmp.Compare(a.number, b.number)) })
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			if b.number <= a.number && x.oneLife(parent, a.czxid, b.czxid) {
				r.violation(x, []record{a.rec, b.rec}, "%s: %s was created at zxid %#x, and later, at %#x, %s", parent, a.path, a.czxid, b.czxid, b.path)
			}
		}
	}
	r.count(n, "sequential znodes")
	r.count(len(byParent), "parents")
}

// oneLife reports whether the znode at path was not created again between two
// zxids, as far as is known.
func (x *index) oneLife(path string, from, to int64) bool {
	p := x.paths[path]
	return p == nil || p.before(from) == p.before(to) && p.absentIn(from, to) == nil
}

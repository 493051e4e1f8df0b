package checkers

import (
	"cmp"
	"math"
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// facts checks all statements about every path against each other: there should be one
// history of each znode that explains every reply of every server.
func facts(x *index, _ *Options, r *Result) {
	nodes := 0
	for _, name := range x.names {
		p := x.paths[name]
		nodes += len(p.lives)
		f := &factCheck{x: x, r: r, p: p}
		f.existence()
		f.odd()
		f.origins()
		f.ends()
		f.blind()
		for _, in := range p.lives {
			f.versions(in)
			f.children(in)
		}
	}
	listings(x, r)
	r.count(x.statements, "statements")
	r.count(nodes, "znodes")
	r.count(len(x.names), "paths")
}

// factCheck checks one path.
type factCheck struct {
	x *index
	r *Result
	p *path
}

func (f *factCheck) violation(format string, a, b record, args ...any) {
	f.r.violation(f.x, []record{a, b}, f.p.name+": "+format, args...)
}

// existence checks that incarnations do not overlap, and that no reply shows the
// znode missing while one exists. An acknowledged delete is such a reply.
func (f *factCheck) existence() {
	for i, in := range f.p.lives {
		if i > 0 && f.p.lives[i-1].last >= in.czxid {
			old := f.p.lives[i-1]
			f.violation("the znode of czxid %#x is still seen at %#x, when that of czxid %#x had taken its place", old.rec, in.rec, old.czxid, old.last, in.czxid)
		}
		if a := f.p.absentIn(in.czxid-1, in.last); a != nil {
			f.violation("there is none at zxid %#x, though the znode of czxid %#x is seen at %#x", a.rec, in.rec, a.zxid, in.czxid, in.last)
		}
	}
}

// odd checks znodes if only their existence is known: each must be a known
// incarnation, or one that a request without a reply may have created.
func (f *factCheck) odd() {
	for _, pt := range f.p.odd {
		after := int64(0)
		if in := f.p.before(pt.zxid); in != nil {
			after = in.last
		}
		if gone := f.p.absentIn(after, pt.zxid); gone != nil && f.openCreates() == 0 && pt.zxid >= f.x.first {
			f.violation("it is there at zxid %#x, though there was none at %#x and nobody has created it since", gone.rec, pt.rec, pt.zxid, gone.zxid)
		}
	}
}

// openCreates counts the creates of this path that may or may not have been
// executed.
func (f *factCheck) openCreates() int {
	const digits = 10 // of the number at the end of a sequential znode's name
	n := f.x.openCreates[f.p.name]
	if l := len(f.p.name) - digits; l > 0 {
		n += f.x.openCreates[f.p.name[:l]]
	}
	return n
}

// origins checks that a client created every incarnation, with the transaction of
// its czxid.
func (f *factCheck) origins() {
	open := -1
	for _, in := range f.p.lives {
		if in.czxid < f.x.first || f.wrote(in.czxid, proto.OpCreate2) {
			continue
		}
		if o := f.x.ops[in.czxid]; o != nil {
			f.violation("its czxid %#x is that of a transaction that did not create it", in.rec, o, in.czxid)
			continue
		}
		if open < 0 {
			open = f.openCreates()
		}
		if open--; open < 0 {
			open = 0
			f.violation("nobody has created the znode of czxid %#x", in.rec, in.rec, in.czxid)
		}
	}
}

// wrote reports whether a known transaction made a write of that kind to this
// path.
func (f *factCheck) wrote(zxid int64, kind proto.Op) bool {
	return slices.ContainsFunc(f.x.byZxid[zxid], func(w *write) bool { return w.path == f.p.name && w.kind == kind })
}

// ends checks that a client has deleted every znode that is gone. Ephemerals go
// with their sessions, and containers when they are empty.
func (f *factCheck) ends() {
	open := f.p.openDeletes()
	for i, in := range f.p.lives {
		next := int64(math.MaxInt64)
		var rec record
		if i+1 < len(f.p.lives) {
			next, rec = f.p.lives[i+1].czxid, f.p.lives[i+1].rec
		}
		if a := f.p.absentIn(in.last, next); a != nil {
			next, rec = a.zxid, a.rec
		}
		if rec == nil || in.owner != 0 || f.p.container || f.p.deletedIn(in.last, next) {
			continue
		}
		if open--; open < 0 {
			open = 0
			f.violation("the znode of czxid %#x was there at %#x and is gone at %#x, and nobody has deleted it", in.rec, rec, in.czxid, in.last, next)
		}
	}
}

// versions checks that the data of a znode change with the known writes, and only
// with those; the version counts them.
func (f *factCheck) versions(in *incarnation) {
	missing := 0
	for i, v := range in.data {
		f.author(in, v)
		if i == 0 {
			missing += max(0, int(v.number)-1) // version 0 is the create, which may have had no reply
			continue
		}
		old := in.data[i-1]
		switch {
		case old.last >= v.from && old.from != v.from:
			f.violation("mzxid %#x (version %d) is still seen at zxid %#x, when mzxid %#x (version %d) had taken its place", old.rec, v.rec, old.from, old.number, old.last, v.from, v.number)
		case old.number >= v.number || old.from == v.from:
			f.violation("mzxid %#x has version %d, and mzxid %#x version %d", old.rec, v.rec, old.from, old.number, v.from, v.number)
		}
		missing += int(v.number-old.number) - 1
	}
	for _, w := range f.p.sets[in.czxid] {
		if w.version >= 0 && w.stat.Version != w.version+1 {
			f.violation("a setData that expected version %d made version %d", w.op, in.rec, w.version, w.stat.Version)
		}
		missing -= twice(w, in)
	}
	if missing > f.p.opens {
		f.violation("the versions of the znode of czxid %#x count %d writes that nobody has made (%d are without a reply)", in.rec, in.data[0].rec, in.czxid, missing, f.p.opens)
	}
}

// blind checks that no client sees data after a request without a reply has replaced them,
// if we know that it was executed.
func (f *factCheck) blind() {
	for _, w := range f.p.blind {
		if in := f.p.before(w.zxid - 1); in != nil {
			if v := spanOver(in.data, w.zxid); v != nil {
				f.violation("mzxid %#x is still seen at zxid %#x, though it was written at %#x", v.rec, w.op, v.from, v.last, w.zxid)
			}
		}
	}
}

// twice returns 1 for a write that another write of the same multi has replaced:
// no state shows its version.
func twice(w *write, in *incarnation) int {
	first, _ := slices.BinarySearchFunc(in.data, w.zxid, func(v *version, z int64) int { return cmp.Compare(v.from, z) })
	for _, v := range in.data[first:] {
		if v.from != w.zxid {
			break
		}
		if v.number == w.stat.Version {
			return 0
		}
	}
	return 1
}

// author checks that the transaction of the mzxid wrote the data.
func (f *factCheck) author(in *incarnation, v *version) {
	if v.from < f.x.first {
		return
	}
	if v.value != nil && *v.value != "" {
		w := f.x.values[*v.value]
		switch {
		case w == nil:
			f.violation("%q was never written", v.rec, v.rec, *v.value)
		case w.path != f.p.name:
			f.violation("%q was written to another path", v.rec, w.op, *v.value)
		case !w.done():
			f.violation("%q is there (mzxid %#x), and the request that wrote it was refused", v.rec, w.op, *v.value, v.from)
		case w.zxid != v.from:
			f.violation("%q was written at zxid %#x and is seen with mzxid %#x", v.rec, w.op, *v.value, w.zxid, v.from)
		}
		return
	}
	kind := proto.OpSetData
	if v.from == in.czxid {
		kind = proto.OpCreate2
	}
	if o := f.x.ops[v.from]; o != nil && !f.wrote(v.from, kind) {
		f.violation("its mzxid %#x is that of a transaction that did not write it", v.rec, o, v.from)
	}
}

// children checks that the list of children changes at every pzxid, and only
// there.
func (f *factCheck) children(in *incarnation) {
	for i, v := range in.kids {
		if i > 0 {
			if old := in.kids[i-1]; old.last >= v.from {
				f.violation("pzxid %#x (cversion %d) is still seen at zxid %#x, when pzxid %#x (cversion %d) had taken its place", old.rec, v.rec, old.from, old.number, old.last, v.from, v.number)
			}
		}
	}
	for _, z := range writesIn(f.x.kidChanges[f.p.name], in.czxid, in.last) {
		if v := spanOver(in.kids, z.zxid); v != nil {
			f.violation("pzxid %#x is still seen at zxid %#x, though its children changed at %#x", v.rec, z.op, v.from, v.last, z.zxid)
		}
	}
}

// writesIn returns the writes in (after, upTo] of a list that is sorted by zxid.
func writesIn(list []*write, after, upTo int64) []*write {
	at := func(z int64) int {
		i, _ := slices.BinarySearchFunc(list, z+1, func(w *write, z int64) int { return cmp.Compare(w.zxid, z) })
		return i
	}
	return list[at(after):max(at(after), at(upTo))]
}

// spanOver returns the version that is said to have lasted through zxid: it began
// before zxid and did not end there. It looks only at the latest version;
// overlapping versions are reported elsewhere.
func spanOver(list []*version, zxid int64) *version {
	i, _ := slices.BinarySearchFunc(list, zxid, func(v *version, z int64) int { return cmp.Compare(v.from, z) })
	if i == 0 || list[i-1].last < zxid {
		return nil
	}
	return list[i-1]
}

// listings checks that a list of children shows every child that is known to
// exist at its zxid. That it shows no other child is checked through the
// statements about paths.
func listings(x *index, r *Result) {
	n := 0
	for _, name := range x.names {
		p, dir := x.paths[name], x.paths[proto.Parent(name)]
		n += len(p.listings)
		if dir == nil {
			continue
		}
		for _, in := range p.lives {
			for _, l := range dir.listings[dir.listingsBefore(in.czxid):dir.listingsBefore(in.last+1)] {
				if !l.has(proto.Base(name)) {
					r.violation(x, []record{l.rec, in.rec}, "%s: the list of its children at zxid %#x lacks %s, which is there from %#x to %#x", dir.name, l.zxid, proto.Base(name), in.czxid, in.last)
				}
			}
		}
	}
	r.count(n, "listings")
}

// conclude prepares the facts about the writes that several checkers need.
func (x *index) conclude() {
	x.first = math.MaxInt64
	for _, o := range x.h.Ops {
		if o.Zxid > 0 {
			x.first = min(x.first, o.Zxid)
		}
	}
	x.kidChanges, x.openCreates = make(map[string][]*write), make(map[string]int)
	for _, w := range x.writes {
		if w.kind == proto.OpCreate2 && w.open() {
			x.openCreates[w.path]++
		}
		if w.done() && w.kind != proto.OpSetData {
			parent := proto.Parent(w.path)
			x.kidChanges[parent] = append(x.kidChanges[parent], w)
		}
	}
	for _, list := range x.kidChanges {
		slices.SortStableFunc(list, func(a, b *write) int { return cmp.Compare(a.zxid, b.zxid) })
	}
}

package checkers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// path is everything that was said about a path.
type path struct {
	name      string
	container bool             // a client asked for a container there
	points    []point          // until they are arranged; without those from lists of children
	listings  []listing        // of its children, by zxid
	children  map[string]*path // the children that are on some list, by name

	lives   []*incarnation // by czxid
	absent  []point        // by zxid: there was no znode
	present []point        // it existed, no more is known; until they are processed
	odd     []point        // it existed, no more is known, and no incarnation explains it
	creates []*write
	sets    map[int64][]*write // sets with a stat in the reply, by its czxid
	blind   []*write           // other sets that are known to have been executed
	opens   int                // number of sets that may or may not have been executed
	deletes []*write           // known deletes first, by zxid, then deletes that may have been executed
}

// point is what one reply says about a path in the state of one zxid.
type point struct {
	zxid   int64
	exists bool
	stat   *history.Stat // nil: it exists, no more is known
	data   *string       // nil: not known
	rec    record
}

// listing is the list of children of a path in the state of one zxid.
type listing struct {
	zxid  int64
	names []string // sorted
	rec   record
}

// has reports whether a child is on the list.
func (l *listing) has(name string) bool {
	_, found := slices.BinarySearch(l.names, name)
	return found
}

// incarnation is a znode from its creation to its deletion.
type incarnation struct {
	czxid int64
	span  // of existence
	owner int64
	data  []*version // by mzxid
	kids  []*version // by pzxid; the version is the cversion
}

// span is a range of zxids in which something did not change: from the zxid at
// which it began according to a stat, to the last state that a client saw.
type span struct {
	from, last int64
	rec        record // that showed last
}

// extend records that the span lasted to zxid.
func (s *span) extend(zxid int64, rec record) {
	if zxid > s.last || s.rec == nil {
		s.last, s.rec = zxid, rec
	}
}

// version is the data, or the list of children, of a znode from one change to the
// next.
type version struct {
	span
	number int32
	value  *string
}

func (x *index) path(name string) *path {
	if x.paths[name] == nil {
		x.paths[name] = &path{name: name}
	}
	return x.paths[name]
}

// see records a point.
func (x *index) see(name string, p point) {
	if name == "" || p.zxid <= 0 || under(name, "/zookeeper") { // the servers write /zookeeper themselves
		return
	}
	at := x.path(name)
	at.points = append(at.points, p)
	x.statements++
	if p.data != nil && p.stat != nil {
		x.seen(name, *p.data, p.stat.Mzxid)
	}
}

// observe extracts every statement about a path from the history.
func (x *index) observe() {
	for _, o := range x.h.Ops {
		if o.Answered() && o.Bad == "" {
			x.observeOp(o)
		}
	}
	for _, s := range x.h.States {
		for i := range s.Nodes {
			if !whole(s) {
				break
			}
			n := &s.Nodes[i]
			x.see(n.Path, point{zxid: s.Zxid, exists: true, stat: &n.Stat, data: &n.Data, rec: s})
		}
	}
	for _, w := range x.writes {
		if w.seq || !w.done() && !w.open() {
			continue
		}
		p := x.path(w.path)
		switch w.kind {
		case proto.OpCreate2:
			p.creates = append(p.creates, w)
			p.container = p.container || w.mode == proto.ModeContainer
		case proto.OpSetData:
			p.takeSet(w)
		case proto.OpDelete:
			p.deletes = append(p.deletes, w)
		}
	}
	for _, s := range x.h.States {
		x.observeAbsence(s)
	}
	for _, p := range x.paths {
		p.arrange()
	}
	x.unlisted()
	for _, p := range x.paths {
		for _, pt := range p.present {
			p.there(pt)
		}
		p.present = nil
	}
	x.listed()
}

// takeSet records a setData that was executed or may have been.
func (p *path) takeSet(w *write) {
	switch {
	case w.open():
		p.opens++
	case w.stat == nil:
		p.opens++
		p.blind = append(p.blind, w)
	default:
		if p.sets == nil {
			p.sets = make(map[int64][]*write)
		}
		p.sets[w.stat.Czxid] = append(p.sets[w.stat.Czxid], w)
	}
}

// whole reports whether a State shows one zxid.
func whole(s *history.State) bool { return len(s.Nodes) > 0 && (s.Digest != "" || s.Final) }

// observeAbsence records which znodes a whole tree does not have.
func (x *index) observeAbsence(s *history.State) {
	if !whole(s) {
		return
	}
	for name := range x.paths {
		_, found := slices.BinarySearchFunc(s.Nodes, name, func(n history.Node, name string) int { return strings.Compare(n.Path, name) })
		if !found && under(name, s.Nodes[0].Path) {
			x.see(name, point{zxid: s.Zxid, rec: s})
		}
	}
}

// observeOp records the facts in a reply.
func (x *index) observeOp(o *history.Op) {
	switch o.Op {
	case proto.OpGetData, proto.OpExists, proto.OpGetChildren2:
		switch o.Code {
		case proto.Ok:
			p := point{zxid: o.Zxid, exists: true, stat: o.Stat, rec: o}
			if o.Op == proto.OpGetData {
				p.data = &o.Data
			}
			x.see(o.Path, p)
			if o.Op == proto.OpGetChildren2 {
				x.list(o)
			}
		case proto.ErrNoNode:
			x.see(o.Path, point{zxid: o.Zxid, rec: o})
		}
	case proto.OpMulti:
		x.observeMulti(o)
	default:
		x.observeWrite(o, &history.Part{Op: o.Op, Path: o.Path, Value: o.Value, Mode: o.Mode, Code: o.Code, Created: o.Created, Stat: o.Stat})
	}
}

// list records the children that a reply shows.
func (x *index) list(o *history.Op) {
	if under(o.Path, "/zookeeper") || o.Zxid <= 0 {
		return
	}
	names := o.Children
	if !slices.IsSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	p := x.path(o.Path)
	p.listings = append(p.listings, listing{zxid: o.Zxid, names: names, rec: o})
	if p.children == nil {
		p.children = make(map[string]*path)
	}
	for _, name := range names {
		if p.children[name] == nil {
			p.children[name] = x.path(strings.TrimSuffix(o.Path, "/") + "/" + name)
		}
	}
}

// listed records, for every list of children, that the children exist. Most of a long
// history consists of lists, so we don't keep points for them, but update the incarnations
// immediately.
func (x *index) listed() {
	for _, dir := range x.paths {
		for _, l := range dir.listings {
			x.statements += len(l.names)
			for _, name := range l.names {
				dir.children[name].there(point{zxid: l.zxid, exists: true, rec: l.rec})
			}
		}
	}
}

// observeMulti records the facts in the reply to a multi: its changes, or why it failed. Of several
// changes to one znode only the last is visible in the state of its zxid.
func (x *index) observeMulti(o *history.Op) {
	if o.Code != proto.Ok {
		return
	}
	done := o.Done()
	for i := range o.Parts {
		p := &o.Parts[i]
		same := func(q history.Part) bool { return q.Path == p.Path }
		switch {
		case done && p.Op != proto.OpCheck && !slices.ContainsFunc(o.Parts[i+1:], same),
			!done && p.Code != proto.Ok && p.Code != proto.ErrRuntimeInconsistency && !slices.ContainsFunc(o.Parts[:i], same):
			x.observeWrite(o, p)
		}
	}
}

// observeWrite records the facts in the reply to a write.
func (x *index) observeWrite(o *history.Op, p *history.Part) {
	target := p.Path
	switch p.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer:
		switch p.Code {
		case proto.Ok:
			st := p.Stat
			if st == nil {
				st = &history.Stat{Czxid: o.Zxid, Mzxid: o.Zxid, Pzxid: o.Zxid}
				if p.Mode.Ephemeral() {
					st.Owner = o.Session
				}
			}
			x.see(p.Created, point{zxid: o.Zxid, exists: true, stat: st, data: &p.Value, rec: o})
		case proto.ErrNodeExists:
			if !p.Mode.Sequential() {
				x.see(target, point{zxid: o.Zxid, exists: true, rec: o})
			}
		case proto.ErrNoNode:
			x.see(proto.Parent(target), point{zxid: o.Zxid, rec: o})
		}
	case proto.OpSetData, proto.OpDelete, proto.OpCheck:
		switch p.Code {
		case proto.Ok:
			if p.Op == proto.OpDelete {
				x.see(target, point{zxid: o.Zxid, rec: o})
			} else if p.Stat != nil {
				x.see(target, point{zxid: o.Zxid, exists: true, stat: p.Stat, data: &p.Value, rec: o})
			}
		case proto.ErrNoNode:
			x.see(target, point{zxid: o.Zxid, rec: o})
		case proto.ErrBadVersion, proto.ErrNotEmpty:
			x.see(target, point{zxid: o.Zxid, exists: true, rec: o})
		}
	}
}

// arrange sorts the points into incarnations and absences.
func (p *path) arrange() {
	byCzxid := make(map[int64]*incarnation)
	data, kids := make(versions), make(versions)
	for _, pt := range p.points {
		switch {
		case !pt.exists:
			p.absent = append(p.absent, pt)
		case pt.stat == nil:
			p.present = append(p.present, pt)
		default:
			in := byCzxid[pt.stat.Czxid]
			if in == nil {
				in = &incarnation{czxid: pt.stat.Czxid, span: span{from: pt.stat.Czxid}, owner: pt.stat.Owner}
				byCzxid[in.czxid] = in
				p.lives = append(p.lives, in)
			}
			in.extend(pt.zxid, pt.rec)
			in.data = data.add(in.data, in, pt.stat.Mzxid, pt.stat.Version, pt)
			in.kids = kids.add(in.kids, in, pt.stat.Pzxid, pt.stat.Cversion, pt)
		}
	}
	p.points = nil
	slices.SortStableFunc(p.absent, func(a, b point) int { return cmp.Compare(a.zxid, b.zxid) })
	slices.SortFunc(p.lives, func(a, b *incarnation) int { return cmp.Compare(a.czxid, b.czxid) })
	for _, in := range p.lives {
		sortVersions(in.data)
		sortVersions(in.kids)
	}
	slices.SortFunc(p.listings, func(a, b listing) int { return cmp.Compare(a.zxid, b.zxid) })
	slices.SortStableFunc(p.deletes, func(a, b *write) int { return cmp.Compare(a.order(), b.order()) })
}

// there records a statement that only says that a znode existed: the incarnation
// before it has lasted until then, if nothing contradicts that. The order of such
// statements does not matter.
func (p *path) there(pt point) {
	in := p.before(pt.zxid)
	switch {
	case in != nil && pt.zxid <= in.last:
	case in != nil && p.absentIn(in.last, pt.zxid) == nil && !p.another(in, pt):
		in.extend(pt.zxid, pt.rec)
	default:
		p.odd = append(p.odd, pt)
	}
}

// another reports whether a znode at the same path may have replaced this
// incarnation: an ephemeral znode goes with its session, without a record, and
// another session may have created the next one with a request without a reply.
func (p *path) another(in *incarnation, pt point) bool {
	return in.owner != 0 && slices.ContainsFunc(p.creates, func(w *write) bool {
		return w.open() && w.op.Session != in.owner && w.op.Call < when(pt.rec)
	})
}

// unlisted records, for every incarnation, the first list of children that lacks it after the last
// statement that identifies it. By then it is deleted, and a later znode with its name is another
// one.
func (x *index) unlisted() {
	for name, p := range x.paths {
		dir := x.paths[proto.Parent(name)]
		if dir == nil || len(dir.listings) == 0 {
			continue
		}
		base := proto.Base(name)
		for i, in := range p.lives {
			k := dir.listingsBefore(in.last + 1)
			for k < len(dir.listings) && dir.listings[k].has(base) {
				k++
			}
			if k == len(dir.listings) || i+1 < len(p.lives) && dir.listings[k].zxid >= p.lives[i+1].czxid {
				continue
			}
			p.absent = append(p.absent, point{zxid: dir.listings[k].zxid, rec: dir.listings[k].rec})
		}
		slices.SortStableFunc(p.absent, func(a, b point) int { return cmp.Compare(a.zxid, b.zxid) })
	}
}

// listingsBefore counts the lists of children from states before zxid.
func (p *path) listingsBefore(zxid int64) int {
	i, _ := slices.BinarySearchFunc(p.listings, zxid, func(l listing, z int64) int { return cmp.Compare(l.zxid, z) })
	return i
}

func sortVersions(list []*version) {
	slices.SortStableFunc(list, func(a, b *version) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.number, b.number))
	})
}

// versionKey identifies a version. Two numbers for one zxid stay two versions,
// which contradict each other.
type versionKey struct {
	in     *incarnation
	zxid   int64
	number int32
}

// versions finds the known versions while points are arranged.
type versions map[versionKey]*version

// add records that a point shows the version of a zxid.
func (vs versions) add(list []*version, in *incarnation, zxid int64, number int32, pt point) []*version {
	key := versionKey{in, zxid, number}
	v := vs[key]
	if v == nil {
		v = &version{span: span{from: zxid}, number: number}
		vs[key] = v
		list = append(list, v)
	}
	v.extend(pt.zxid, pt.rec)
	if v.value == nil {
		v.value = pt.data
	}
	return list
}

// alive returns the incarnation that is known to exist at zxid, or nil if there
// is none.
func (p *path) alive(zxid int64) *incarnation {
	in := p.before(zxid)
	if in == nil || in.last < zxid {
		return nil
	}
	return in
}

// before returns the latest incarnation that began at or before zxid.
func (p *path) before(zxid int64) *incarnation {
	i, found := slices.BinarySearchFunc(p.lives, zxid, func(in *incarnation, z int64) int { return cmp.Compare(in.czxid, z) })
	if found {
		return p.lives[i]
	}
	if i == 0 {
		return nil
	}
	return p.lives[i-1]
}

// absentIn returns the first statement that there was no znode in (after, upTo].
func (p *path) absentIn(after, upTo int64) *point {
	i, _ := slices.BinarySearchFunc(p.absent, after+1, func(pt point, z int64) int { return cmp.Compare(pt.zxid, z) })
	if i < len(p.absent) && p.absent[i].zxid <= upTo {
		return &p.absent[i]
	}
	return nil
}

// deletedIn reports whether a delete is known in (after, upTo].
func (p *path) deletedIn(after, upTo int64) bool {
	i, _ := slices.BinarySearchFunc(p.deletes, after+1, func(w *write, z int64) int { return cmp.Compare(w.order(), z) })
	return i < len(p.deletes) && p.deletes[i].done() && p.deletes[i].zxid <= upTo
}

// openDeletes counts the deletes that may or may not have been executed.
func (p *path) openDeletes() int {
	n := 0
	for i := len(p.deletes) - 1; i >= 0 && !p.deletes[i].done(); i-- {
		n++
	}
	return n
}

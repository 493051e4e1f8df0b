package tree

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// do applies one write at the next zxid and fails the test unless it succeeds.
func do(t testing.TB, tree *Tree, op proto.Op, req proto.Record) *Result {
	t.Helper()
	r := tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Time: tree.LastZxid() + 1001, Session: 7, Policy: ExtendedTypes}, op, req)
	if r.Code != proto.Ok {
		t.Fatalf("%v %s: %v", op, describe(req), r.Code)
	}
	return r
}

// plant creates nodes with the flags.
func plant(t testing.TB, tree *Tree, flags proto.CreateMode, paths ...string) {
	t.Helper()
	for _, p := range paths {
		do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: p, Data: []byte(p), ACL: proto.OpenACL(), Flags: int32(flags)})
	}
}

// The effects of transactions on a node and its parent: a field that changes is set to
// the zxid or the time of the transaction, or rises by one.
func TestStatEffects(t *testing.T) {
	t.Parallel()
	const zxid, now = 1000, 99999
	open := proto.OpenACL()
	for _, c := range []struct {
		name         string
		op           proto.Op
		req          proto.Record
		node, parent string // fields of the stat that change
	}{
		{"create", proto.OpCreate, &proto.CreateRequest{Path: "/p/n/new", ACL: open}, "Cversion NumChildren Pzxid", ""},
		{"delete", proto.OpDelete, &proto.DeleteRequest{Path: "/p/n/kid", Version: -1}, "Cversion NumChildren Pzxid", ""},
		{"setData", proto.OpSetData, &proto.SetDataRequest{Path: "/p/n", Version: -1}, "DataLength Mtime Mzxid Version", ""},
		{"setACL", proto.OpSetACL, &proto.SetACLRequest{Path: "/p/n", ACL: open, Version: -1}, "Aversion", ""},
		{"closeSession", proto.OpCloseSession, nil, "Cversion NumChildren Pzxid", ""},
		{"failed setData", proto.OpSetData, &proto.SetDataRequest{Path: "/p/n", Version: 9}, "", ""},
		{"failed create", proto.OpCreate, &proto.CreateRequest{Path: "/p/n/kid", ACL: open, Flags: 0}, "", ""},
		{"failed multi", proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: "/p/n", Version: -1}},
			{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/p/n/new", ACL: open}},
			{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/nope", Version: -1}},
		}}, "", ""},
		{"child's setData", proto.OpSetData, &proto.SetDataRequest{Path: "/p/n/kid", Version: -1}, "", ""},
	} {
		tree := New()
		plant(t, tree, 0, "/p", "/p/n", "/p/n/kid")
		plant(t, tree, proto.ModeEphemeral, "/p/n/ephemeral")
		var before, parent [2]proto.Stat
		stats := func(i int) {
			tree.Get("/p/n").Stat(&before[i])
			tree.Get("/p").Stat(&parent[i])
		}
		stats(0)
		tree.Apply(&Txn{Zxid: zxid, Time: now, Session: 7}, c.op, c.req)
		stats(1)
		if got := moved(before[0], before[1], zxid, now); got != c.node {
			t.Errorf("%s moves %q, not %q", c.name, got, c.node)
		}
		if got := moved(parent[0], parent[1], zxid, now); got != c.parent {
			t.Errorf("%s moves %q of the parent, not %q", c.name, got, c.parent)
		}
		if tree.LastZxid() != zxid {
			t.Errorf("%s leaves zxid %d", c.name, tree.LastZxid())
		}
	}
}

// moved returns the names of the fields in which b differs from a. Fields with an
// impossible value get a question mark.
func moved(a, b proto.Stat, zxid, now int64) string {
	var names []string
	for _, f := range []struct {
		name       string
		a, b, want int64
	}{
		{"Aversion", int64(a.Aversion), int64(b.Aversion), int64(a.Aversion) + 1},
		{"Ctime", a.Ctime, b.Ctime, -1},
		{"Cversion", int64(a.Cversion), int64(b.Cversion), int64(a.Cversion) + 1},
		{"Czxid", a.Czxid, b.Czxid, -1},
		{"DataLength", int64(a.DataLength), int64(b.DataLength), 0},
		{"Mtime", a.Mtime, b.Mtime, now},
		{"Mzxid", a.Mzxid, b.Mzxid, zxid},
		{"NumChildren", int64(a.NumChildren), int64(b.NumChildren), int64(b.NumChildren)},
		{"Owner", a.EphemeralOwner, b.EphemeralOwner, -1},
		{"Pzxid", a.Pzxid, b.Pzxid, zxid},
		{"Version", int64(a.Version), int64(b.Version), int64(a.Version) + 1},
	} {
		if f.a == f.b {
			continue
		}
		if f.b != f.want {
			f.name += "?"
		}
		names = append(names, f.name)
	}
	return strings.Join(names, " ")
}

func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	open, mine := proto.OpenACL(), list("31 digest me:1")
	bad := list("31 nonsense x")
	tree := New()
	plant(t, tree, 0, "/open", "/open/full", "/open/full/kid")
	plant(t, tree, proto.ModeEphemeral, "/eph")
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/shut", ACL: mine})
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/zookeeper/quota/open", ACL: open})
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/zookeeper/quota/open/zookeeper_limits", Data: []byte("countHardLimit=0;byteHardLimit=0"), ACL: open})
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/zookeeper/quota/open/zookeeper_stats", ACL: open})
	for _, c := range []struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
	}{
		// Each request breaks its rule and as many later rules as it can, so that we see
		// the order of the checks.
		{proto.OpCreate, &proto.CreateRequest{Path: proto.NullString, Flags: 9}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.CreateRequest{Path: proto.NullString, Flags: 5}, proto.ErrUnimplemented},
		{proto.OpCreateTTL, &proto.CreateTTLRequest{Path: proto.NullString, Flags: 0, TTL: 1}, proto.ErrBadArguments},
		{proto.OpCreateTTL, &proto.CreateTTLRequest{Path: proto.NullString, Flags: 0, TTL: -1}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.CreateRequest{Path: proto.NullString, ACL: bad}, proto.ErrMarshalling},
		{proto.OpCreate, &proto.CreateRequest{Path: "nope", ACL: bad}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.CreateRequest{Path: "/no/\x00", ACL: bad}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.CreateRequest{Path: "/no/\x01", ACL: bad}, proto.ErrInvalidACL},
		{proto.OpCreate, &proto.CreateRequest{Path: "/no/\x01", ACL: open}, proto.ErrNoNode},
		{proto.OpCreate, &proto.CreateRequest{Path: "/shut/\x01", ACL: open}, proto.ErrNoAuth},
		{proto.OpCreate, &proto.CreateRequest{Path: "/eph/\x01", ACL: open}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.CreateRequest{Path: "/open/full", ACL: open}, proto.ErrNodeExists},
		{proto.OpCreate, &proto.CreateRequest{Path: "/eph/x", ACL: open}, proto.ErrNoChildrenForEphemerals},
		{proto.OpCreate, &proto.CreateRequest{Path: "/open/x", ACL: open}, proto.ErrQuotaExceeded},
		{proto.OpDelete, &proto.DeleteRequest{Path: proto.NullString}, proto.ErrMarshalling},
		{proto.OpDelete, &proto.DeleteRequest{Path: "nope"}, proto.ErrBadArguments},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/zookeeper"}, proto.ErrBadArguments},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/no/x"}, proto.ErrNoNode},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/shut/x"}, proto.ErrNoAuth},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/open/x"}, proto.ErrNoNode},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/open/full", Version: 3}, proto.ErrBadVersion},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/open/full"}, proto.ErrNotEmpty},
		{proto.OpSetData, &proto.SetDataRequest{Path: proto.NullString}, proto.ErrBadArguments},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/no/"}, proto.ErrBadArguments},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/no"}, proto.ErrNoNode},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/shut", Version: 3}, proto.ErrNoAuth},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/open", Data: make([]byte, 50), Version: 3}, proto.ErrQuotaExceeded},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/open", Data: make([]byte, 5), Version: 3}, proto.ErrBadVersion},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/no/", ACL: bad}, proto.ErrBadArguments},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/no", ACL: bad}, proto.ErrInvalidACL},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/no", ACL: open}, proto.ErrNoNode},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/shut", ACL: open, Version: 3}, proto.ErrNoAuth},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/open", ACL: open, Version: 3}, proto.ErrBadVersion},
		// Operations that clients don't send as a request, and requests of the wrong type.
		{proto.OpCheck, &proto.CheckVersionRequest{Path: "/open"}, proto.ErrUnimplemented},
		{proto.OpGetData, &proto.GetDataRequest{Path: "/open"}, proto.ErrUnimplemented},
		{proto.Op(99), nil, proto.ErrUnimplemented},
		{proto.OpCreate, &proto.MultiRequest{}, proto.ErrUnimplemented},
		{proto.OpMulti, &proto.CreateRequest{}, proto.ErrMarshalling},
		{proto.OpMulti, nil, proto.ErrMarshalling},
		{proto.OpCreate, nil, proto.ErrMarshalling},
		{proto.OpCreateTTL, &proto.CreateRequest{}, proto.ErrMarshalling},
		{proto.OpCreate, &proto.CreateTTLRequest{}, proto.ErrMarshalling},
		{proto.OpDelete, &proto.SetDataRequest{}, proto.ErrMarshalling},
		{proto.OpSetData, &proto.DeleteRequest{}, proto.ErrMarshalling},
		{proto.OpSetACL, &proto.DeleteRequest{}, proto.ErrMarshalling},
		{proto.OpDeleteContainer, &proto.DeleteRequest{}, proto.ErrMarshalling},
		{proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Req: &proto.GetDataRequest{Path: "/"}}}}, proto.ErrMarshalling},
		{proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Req: &proto.CreateRequest{Path: "/"}}}}, proto.ErrMarshalling},
	} {
		before := dumped(t, tree)
		r := tree.Apply(&Txn{Zxid: tree.LastZxid(), Policy: EnforceQuota}, c.op, c.req)
		if r.Code != c.want || len(r.Events) > 0 || len(r.AppendBody(nil)) > 0 {
			t.Errorf("%v %s: %v instead of %v, %d events, body %x", c.op, describe(c.req), r.Code, c.want, len(r.Events), r.AppendBody(nil))
		}
		if dumped(t, tree) != before {
			t.Errorf("%v %s changed the tree", c.op, describe(c.req))
		}
	}
}

// ZooKeeper notices a null id only when it looks at it, so an earlier operation of the
// multi that fails hides it. It notices a null path or list at once.
func TestMultiWithNulls(t *testing.T) {
	t.Parallel()
	fail := proto.MultiOp{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/nope"}}
	null := proto.MultiOp{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/x", ACL: list("31 digest null")}}
	for _, c := range []struct {
		ops  []proto.MultiOp
		want proto.Code
	}{
		{[]proto.MultiOp{null, fail}, proto.ErrMarshalling},
		{[]proto.MultiOp{fail, null}, proto.Ok},
		{[]proto.MultiOp{fail, {Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: proto.NullString}}}, proto.ErrMarshalling},
		{[]proto.MultiOp{fail, {Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/x"}}}, proto.ErrMarshalling},
	} {
		tree := New()
		plant(t, tree, 0, "/a")
		before := dumped(t, tree)
		ops := append([]proto.MultiOp{{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/a"}}}, c.ops...)
		r := tree.Apply(&Txn{Zxid: tree.LastZxid()}, proto.OpMulti, &proto.MultiRequest{Ops: ops})
		if r.Code != c.want || len(r.Events) > 0 || (len(r.Multi) > 0) != (c.want == proto.Ok) {
			t.Errorf("%s: %v, %d entries, %d events", describe(&proto.MultiRequest{Ops: ops}), r.Code, len(r.Multi), len(r.Events))
		}
		if dumped(t, tree) != before {
			t.Error("the tree has changed")
		}
	}
}

// After the largest number, the counter of created children and the parent's pzxid don't
// change any more. Within one multi, however, the counter should keep rising.
func TestSequenceOverflow(t *testing.T) {
	t.Parallel()
	tree := New()
	plant(t, tree, 0, "/p")
	p := tree.get("/p")
	tree.edit(p)
	p.State().Cversion = math.MaxInt32 - 1
	tree.commit(p)
	seq := func(path string) *proto.CreateRequest {
		return &proto.CreateRequest{Path: path, ACL: proto.OpenACL(), Flags: int32(proto.ModePersistentSequential)}
	}
	if r := do(t, tree, proto.OpCreate, seq("/p/a")); r.Path != "/p/a2147483646" {
		t.Error(r.Path)
	}
	pzxid := tree.LastZxid()
	if r := do(t, tree, proto.OpCreate, seq("/p/a")); r.Path != "/p/a2147483647" {
		t.Error(r.Path)
	}
	if p.State().Pzxid != pzxid || p.State().Cversion != math.MaxInt32 {
		t.Errorf("pzxid %d instead of %d, cversion %d", p.State().Pzxid, pzxid, p.State().Cversion)
	}
	if r := tree.Apply(&Txn{Zxid: 100}, proto.OpCreate, seq("/p/a")); r.Code != proto.ErrNodeExists {
		t.Error(r.Code)
	}
	if r := do(t, tree, proto.OpCreate, seq("/p/b")); r.Path != "/p/b2147483647" {
		t.Error(r.Path)
	}
	op := proto.MultiOp{Op: proto.OpCreate, Req: seq("/p/c")}
	r := do(t, tree, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{op, op, op}})
	for i, want := range []string{"/p/c2147483647", "/p/c-2147483648", "/p/c-2147483647"} {
		if r.Multi[i].Path != want {
			t.Errorf("%q instead of %q", r.Multi[i].Path, want)
		}
	}
	var s proto.Stat
	if (*Node)(p).Stat(&s); s.Cversion != -2-s.NumChildren {
		t.Errorf("cversion %d", s.Cversion)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
	for v, want := range map[int32]string{0: "0000000000", 7: "0000000007", -10: "-000000010", math.MinInt32: "-2147483648"} {
		if got := string(appendSequence(nil, v)); got != want {
			t.Errorf("%d is %q", v, got)
		}
	}
}

// The events should carry the list that we check for a watcher: the node's list, or its
// last list if the node is deleted, and the parent's list.
func TestEvents(t *testing.T) {
	t.Parallel()
	tree := New()
	mine := list("31 digest me:1")
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/p", ACL: list("31 world anyone", "1 ip 1.2.3.4")})
	check := func(r *Result, want ...string) {
		t.Helper()
		var got []string
		for _, e := range r.Events {
			got = append(got, fmt.Sprintf("%d %s %v", e.Type, e.Path, e.ACL))
			if e.Zxid != tree.LastZxid() {
				t.Errorf("%v at zxid %d", e, e.Zxid)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("events\n%q\n%q", got, want)
		}
	}
	p := fmt.Sprint(list("31 world anyone", "1 ip 1.2.3.4"))
	check(do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/p/n", ACL: mine, Flags: 1}), "1 /p/n "+fmt.Sprint(mine), "4 /p "+p)
	check(do(t, tree, proto.OpSetACL, &proto.SetACLRequest{Path: "/p", ACL: mine, Version: -1}))
	check(tree.Apply(&Txn{Zxid: 50, IDs: []proto.ID{{Scheme: "super"}}}, proto.OpSetData, &proto.SetDataRequest{Path: "/p/n", Version: -1}), "3 /p/n "+fmt.Sprint(mine))
	check(do(t, tree, proto.OpCloseSession, nil), "2 /p/n "+fmt.Sprint(mine), "4 /p "+fmt.Sprint(mine))
}

func TestCloseSessionRemovesInOrder(t *testing.T) {
	t.Parallel()
	tree := New()
	plant(t, tree, 0, "/p")
	plant(t, tree, proto.ModeEphemeral, "/z", "/b", "/p/x", "/p/a")
	other := &Txn{Zxid: 100, Session: 8}
	tree.Apply(other, proto.OpCreate, &proto.CreateRequest{Path: "/other", ACL: proto.OpenACL(), Flags: 1})
	if got := tree.ListEphemerals(7, "").Paths(); !slices.Equal(got, []string{"/b", "/p/a", "/p/x", "/z"}) {
		t.Errorf("%q", got)
	}
	if got := tree.EphemeralSessions(); len(got) != 2 || len(got[8]) != 1 || tree.EphemeralCount() != 5 {
		t.Errorf("%q", got)
	}
	var deleted []string
	for _, e := range do(t, tree, proto.OpCloseSession, nil).Events {
		if e.Type == proto.EventNodeDeleted {
			deleted = append(deleted, e.Path)
		}
	}
	if !slices.Equal(deleted, []string{"/b", "/p/a", "/p/x", "/z"}) {
		t.Errorf("%q", deleted)
	}
	if len(tree.ListEphemerals(7, "").Paths()) != 0 || tree.Get("/other") == nil || tree.get("/p").State().Pzxid != tree.LastZxid() {
		t.Error("the wrong nodes went")
	}
}

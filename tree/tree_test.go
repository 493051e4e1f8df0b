package tree

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

func TestNew(t *testing.T) {
	t.Parallel()
	tree := New()
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	want := map[string]proto.Stat{
		"/":                 {Cversion: -1, NumChildren: 1},
		"/zookeeper":        {Cversion: -2, NumChildren: 2},
		"/zookeeper/quota":  {},
		"/zookeeper/config": {Aversion: -1},
	}
	for path, stat := range want {
		var got proto.Stat
		n := tree.Get(path)
		if n.Stat(&got); got != stat || n.Data() == nil || len(n.Data()) != 0 || n.Path() != path {
			t.Errorf("%q: %+v, data %v", path, got, n.Data())
		}
	}
	if tree.Get("") != tree.Get("/") || tree.Get("/x") != nil || tree.Get("/zookeeper/") != nil {
		t.Error("Get")
	}
	if tree.NodeCount() != 5 || tree.DataSize() != 1+10+16+17 || tree.CountDescendants(tree.Get("/")) != 3 || tree.CountDescendants(tree.Get("/zookeeper")) != 2 {
		t.Errorf("%d nodes of %d bytes, %d and %d below", tree.NodeCount(), tree.DataSize(), tree.CountDescendants(tree.Get("/")), tree.CountDescendants(tree.Get("/zookeeper")))
	}
	if tree.Advance(7); tree.LastZxid() != 7 {
		t.Error("Advance")
	}
	var names []string
	for name := range tree.Children(tree.Get("/zookeeper")) {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"config", "quota"}) {
		t.Errorf("%q", names)
	}
	for name := range tree.Children(tree.Get("/zookeeper")) {
		names = []string{name}
		break
	}
	if len(names) != 1 || slices.Collect(tree.Children(tree.Get("/zookeeper/quota"))) != nil {
		t.Error("Children")
	}
	d := proto.NewReader(tree.AppendChildren(nil, tree.Get("/")))
	if got := d.Strings(); !slices.Equal(got, []string{"zookeeper"}) || d.Err() != nil {
		t.Errorf("%q %v", got, d.Err())
	}
	d = proto.NewReader(tree.AppendChildren(nil, tree.Get("/zookeeper/quota")))
	if got := d.Strings(); len(got) != 0 || got == nil {
		t.Errorf("%q", got)
	}
}

func TestSetConfig(t *testing.T) {
	t.Parallel()
	tree := New()
	text := []byte("server.1=a:1:2:participant\nversion=0")
	r := tree.SetConfig(&Txn{Zxid: 5, Time: 6}, text, -1)
	if r.Code != proto.Ok || len(r.Events) != 1 || r.Events[0].Type != proto.EventNodeDataChanged || r.Events[0].ACL[0].Perms != proto.PermRead {
		t.Errorf("%+v", r)
	}
	want := proto.GetDataResponse{Data: slices.Clone(text), Stat: proto.Stat{Mzxid: 5, Mtime: 6, Version: -1, Aversion: -1, DataLength: int32(len(text))}}
	if got := r.AppendBody(nil); string(got) != string(want.Append(nil)) {
		t.Errorf("body %x", got)
	}
	text[0] = 'X' // the tree has a copy
	if string(tree.Get(ConfigPath).Data()) != string(want.Data) {
		t.Error("the text was not copied")
	}
	if r := tree.SetConfig(&Txn{Zxid: 7, Time: 8}, want.Data, -1); len(r.Events) != 0 || tree.get(ConfigPath).State().Mzxid != 7 || tree.LastZxid() != 7 {
		t.Error("the same text again")
	}
	if r := tree.SetConfig(&Txn{Zxid: 9, Time: 8}, nil, 0); r.Stat.Version != 0 || tree.Get(ConfigPath).Data() == nil {
		t.Error("no text")
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

func TestReapable(t *testing.T) {
	t.Parallel()
	tree := New()
	open := proto.OpenACL()
	do(t, tree, proto.OpCreateContainer, &proto.CreateRequest{Path: "/never", ACL: open, Flags: 4})
	do(t, tree, proto.OpCreateContainer, &proto.CreateRequest{Path: "/used", ACL: open, Flags: 4})
	do(t, tree, proto.OpCreateContainer, &proto.CreateRequest{Path: "/full", ACL: open, Flags: 4})
	do(t, tree, proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/ttl", ACL: open, Flags: 5, TTL: 50})
	plant(t, tree, 0, "/used/x", "/full/x", "/plain")
	do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: "/used/x"})
	born := tree.get("/never").State().Mtime
	expires := tree.get("/ttl").State().Mtime + 50
	paths := func(now int64, never time.Duration, limit int) string {
		var p []string
		for _, r := range tree.Reapable(now, never, limit) {
			p = append(p, r.Path)
		}
		return strings.Join(p, " ")
	}
	for _, c := range []struct {
		now   int64
		never time.Duration
		limit int
		want  string
	}{
		{0, 0, 9, "/used"},
		{expires, 0, 9, "/used"},
		{expires + 1, 0, 9, "/ttl /used"},
		{born + 10, 10 * time.Millisecond, 9, "/used"},
		{born + 11, 10 * time.Millisecond, 9, "/never /used"},
		{0, 0, 0, ""},
	} {
		if got := paths(c.now, c.never, c.limit); got != c.want {
			t.Errorf("at %d: %q instead of %q", c.now, got, c.want)
		}
	}
	if got := tree.Reapable(expires+1, 0, 1); len(got) != 1 {
		t.Errorf("limit 1: %v", got)
	}
	reap := func(path string, now int64) (*Reap, proto.Code) {
		n := tree.get(path)
		q := &Reap{path, n.State().Czxid, n.State().Mzxid}
		return q, tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Time: now}, proto.OpDeleteContainer, q).Code
	}
	for path, want := range map[string]proto.Code{"/full": proto.ErrNotEmpty, "/plain": proto.ErrBadVersion, "/ttl": proto.ErrBadVersion, "/never": proto.Ok, "/used": proto.Ok} {
		if _, code := reap(path, expires); code != want {
			t.Errorf("%s: %v", path, code)
		}
	}
	// New data since then prevents the removal, and so does a new znode at the path.
	q := &Reap{"/ttl", tree.get("/ttl").State().Czxid, tree.get("/ttl").State().Mzxid}
	do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: "/ttl", Version: -1})
	for range 2 {
		if r := tree.Apply(&Txn{Zxid: 100, Time: expires + 1e6}, proto.OpDeleteContainer, q); r.Code != proto.ErrBadVersion {
			t.Error(r.Code)
		}
		q.Mzxid, q.Czxid = tree.get("/ttl").State().Mzxid, q.Czxid-1
	}
	if _, code := reap("/ttl", expires+1e6); code != proto.Ok || tree.Get("/ttl") != nil {
		t.Error(code)
	}
	again := Reap{}
	d := proto.NewReader(q.Append(nil))
	if again.Decode(&d); again != *q || d.Err() != nil {
		t.Errorf("%+v", again)
	}
}

// The tree should accept a quota on the root but never apply it.
func TestRootQuota(t *testing.T) {
	t.Parallel()
	tree := New()
	tx := &Txn{Zxid: 1, Policy: EnforceQuota}
	for _, path := range []string{"/zookeeper/quota/zookeeper_limits", "/zookeeper/quota/zookeeper_stats", "/x"} {
		r := tree.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte("countHardLimit=0"), ACL: proto.OpenACL()})
		if r.Code != proto.Ok {
			t.Errorf("%s: %v", path, r.Code)
		}
	}
	if got := string(tree.Get("/zookeeper/quota/zookeeper_stats").Data()); got != "count=6,bytes=32" {
		t.Errorf("usage %q", got)
	}
	tree.Apply(tx, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/y", ACL: proto.OpenACL()}}}})
	if tree.Get("/y") == nil || tree.Apply(tx, proto.OpDelete, &proto.DeleteRequest{Path: "/zookeeper/quota/zookeeper_limits"}).Code != proto.Ok {
		t.Error("the quota was applied")
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// Counters are state: whatever a client wrote to a stats node should survive a snapshot
// unchanged, and we should continue counting from there.
func TestQuotaCountersAreState(t *testing.T) {
	t.Parallel()
	tree := New()
	plant(t, tree, 0, "/q", "/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_limits", "/zookeeper/quota/q/zookeeper_stats")
	const stats = "/zookeeper/quota/q/zookeeper_stats"
	for data, want := range map[string]string{
		"count=40,bytes=7":                   "count=41,bytes=9",
		"":                                   "count=0,bytes=1",
		"nonsense":                           "count=0,bytes=1",
		"count=,bytes==;x=1":                 "count=0,bytes=1",
		"count=x,bytes=99999999999999999999": "count=0,bytes=1",
		"byteHardLimit=3;countHardLimit=4,,;;bytes=2": "count=0,bytes=4=;byteHardLimit=3;countHardLimit=4",
	} {
		do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: stats, Data: []byte(data), Version: -1})
		tree = restored(t, tree)
		do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/q/n", Data: []byte("12"), ACL: proto.OpenACL()})
		if got := string(tree.Get(stats).Data()); got != want {
			t.Errorf("%q counts on to %q instead of %q", data, got, want)
		}
		do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: "/q/n"})
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// Reads and frequent writes should allocate only memory that the tree keeps.
func TestAllocations(t *testing.T) {
	tree := filled(t, 1000)
	var stat proto.Stat
	buf := make([]byte, 0, 1<<16)
	ids := []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}
	acl := list("31 ip 127.0.0.0/8")
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		n := tree.Get("/dir7/node107")
		n.Stat(&stat)
		found += len(n.Data()) + n.NumChildren()
		buf = tree.AppendChildren(buf[:0], tree.Get("/dir7"))
		for name := range tree.Children(tree.Get("/dir7")) {
			found += len(name)
		}
		if Allowed(n.ACL(), proto.PermRead, ids) && Allowed(acl, proto.PermRead, ids) {
			found++
		}
	}); n != 0 || found == 0 {
		t.Errorf("reading allocates %v times", n)
	}
	tx := &Txn{Time: 1, IDs: ids}
	set := &proto.SetDataRequest{Path: "/dir7/node107", Data: make([]byte, 100), Version: -1}
	if n := testing.AllocsPerRun(100, func() { tree.Apply(tx, proto.OpSetData, set) }); n != 1 {
		t.Errorf("setData allocates %v times", n)
	}
	create := &proto.CreateRequest{Path: "/dir7/x", Data: make([]byte, 100), ACL: proto.OpenACL()}
	remove := &proto.DeleteRequest{Path: "/dir7/x"}
	if n := testing.AllocsPerRun(100, func() {
		tree.Apply(tx, proto.OpCreate, create)
		tree.Apply(tx, proto.OpDelete, remove)
	}); n != 1 {
		t.Errorf("create and delete allocate %v times, not for the text only", n)
	}
	multi := &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Req: set}, {Op: proto.OpSetData, Req: set}}}
	if n := testing.AllocsPerRun(100, func() { tree.Apply(tx, proto.OpMulti, multi) }); n != 2 {
		t.Errorf("a multi of two setData allocates %v times", n)
	}
}

// The tree should keep nothing that aliases a request.
func TestNothingAliasesTheRequest(t *testing.T) {
	t.Parallel()
	tree := New()
	req := proto.CreateRequest{Path: "/path", Data: []byte("data"), ACL: list("31 digest user:secret")}
	frame := req.Append(nil)
	d := proto.AliasReader(frame)
	var alias proto.CreateRequest
	alias.Decode(&d)
	r := do(t, tree, proto.OpCreate, &alias)
	clear(frame)
	n := tree.Get("/path")
	if n == nil || n.Path() != "/path" || r.Path != "/path" || string(n.Data()) != "data" || !slices.Equal(n.ACL(), req.ACL) {
		t.Errorf("%+v", n)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// A node should cost little more than its path and data.
func TestNodeSize(t *testing.T) {
	const n, budget = 100_000, 280 // bytes, including 100 of data
	before := heap()
	tree := filled(t, n)
	if per := (heap() - before) / n; per > budget {
		t.Errorf("%d bytes per node", per)
	}
	if tree.NodeCount() < n {
		t.Error(tree.NodeCount())
	}
}

// The memory of deleted nodes is free again, for the tree and for the rest of the
// process.
func TestDeletedNodesAreGivenBack(t *testing.T) {
	const n = 100_000
	before := heap()
	tree := filled(t, n)
	full, blocks := heap()-before, tree.arena.Blocks()
	paths := make([]string, 0, n)
	for n := range tree.arena.All {
		if n.NumChildren() == 0 && n.Path() != ConfigPath && n.Path() != quotaPath {
			paths = append(paths, n.Path())
		}
	}
	for _, path := range paths {
		do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1})
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	clear(paths)
	if left := heap() - before; left > full/10 {
		t.Errorf("%d bytes of %d are still there", left, full)
	}
	for i := range n {
		do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/dir1/again", Flags: int32(proto.ModePersistentSequential), ACL: proto.OpenACL()})
		if i%5000 == 0 {
			runtime.GC()
		}
	}
	if got := tree.arena.Blocks(); got > blocks+1 {
		t.Errorf("%d blocks where as many nodes had %d", got, blocks)
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}

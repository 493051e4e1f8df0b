package tree

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// generator makes transactions that often succeed and sometimes fail.
type generator struct {
	*rand.Rand
	zxid int64
}

func newGenerator(seed int64) *generator { return &generator{Rand: rand.New(rand.NewSource(seed))} }

// pick returns one of the arguments.
func pick[T any](g *generator, v ...T) T { return v[g.Intn(len(v))] }

func (g *generator) path() string {
	if g.Intn(6) == 0 {
		return pick(g, "/", "", "a", "/a/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/zookeeper/quota/a",
			"/zookeeper/quota/a/b", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats",
			"/zookeeper/quota/zookeeper_limits", "/zookeeper/quota/zookeeper_stats", "/zookeeper/quota/zookeeper",
			"/zookeeper/quota/zookeeper/zookeeper_limits", "/zookeeper/quota/zookeeper/zookeeper_stats",
			"/zookeeper/quota/a/b/zookeeper_limits", "/zookeeper/quota/a/b/zookeeper_stats", "/a/\x01", "/a//b", "/.")
	}
	var b strings.Builder
	for range 1 + g.Intn(3) {
		b.WriteString(pick(g, "/a", "/b", "/c"))
	}
	return b.String()
}

func (g *generator) data(path string) []byte {
	if strings.HasSuffix(path, "zookeeper_limits") {
		if g.Intn(4) == 0 {
			return pick(g, nil, []byte{}, []byte("garbage"), []byte("="), []byte("countHardLimit="), []byte(",countHardLimit=9"),
				[]byte("countHardLimit=3=4;;x==y,"), []byte(",;"), []byte("x=1"), []byte("x=y"))
		}
		return fmt.Appendf(nil, "count=%d,bytes=%d=;byteHardLimit=%d;countHardLimit=%d", g.Intn(9)-1, g.Intn(9)-1, g.Intn(30)-1, g.Intn(9)-1)
	}
	if g.Intn(5) == 0 {
		return nil
	}
	return make([]byte, g.Intn(12))
}

func (g *generator) acl() []proto.ACL {
	if g.Intn(3) > 0 {
		return proto.OpenACL()
	}
	perms := proto.Perms(g.Intn(32))
	return pick(g, nil, []proto.ACL{{Perms: perms, ID: proto.ID{Scheme: "auth"}}},
		[]proto.ACL{{Perms: perms, ID: proto.ID{Scheme: "digest", ID: "u:x"}}, {Perms: 1, ID: proto.ID{Scheme: "world", ID: "anyone"}}},
		[]proto.ACL{{Perms: perms, ID: proto.ID{Scheme: "nonsense", ID: "u"}}})
}

func (g *generator) version() int32 { return int32(pick(g, -1, -1, -1, 0, 1, 2, -2)) }

func (g *generator) create(flags ...int32) *proto.CreateRequest {
	q := &proto.CreateRequest{Path: g.path(), ACL: g.acl(), Flags: pick(g, flags...)}
	q.Data = g.data(q.Path)
	return q
}

// op makes one operation. inside means that it is for a multi.
func (g *generator) op(inside bool) (proto.Op, proto.Record) {
	path := g.path()
	switch k := g.Intn(20); {
	case k < 4:
		return pick(g, proto.OpCreate, proto.OpCreate2), g.create(0, 0, 0, 1, 2, 3)
	case k < 5:
		return proto.OpCreateContainer, g.create(4)
	case k < 6:
		q := g.create(5, 6)
		return proto.OpCreateTTL, &proto.CreateTTLRequest{Path: q.Path, Data: q.Data, ACL: q.ACL, Flags: q.Flags, TTL: int64(g.Intn(1000))}
	case k < 10:
		return proto.OpDelete, &proto.DeleteRequest{Path: path, Version: g.version()}
	case k < 15:
		return proto.OpSetData, &proto.SetDataRequest{Path: path, Data: g.data(path), Version: g.version()}
	case inside:
		return proto.OpCheck, &proto.CheckVersionRequest{Path: path, Version: g.version()}
	case k < 18:
		return proto.OpSetACL, &proto.SetACLRequest{Path: path, ACL: g.acl(), Version: g.version()}
	}
	return pick(g, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer), g.create(-1, 0, 1, 2, 3, 4, 5, 6, 7)
}

// next makes a transaction on a tree.
func (g *generator) next(t *Tree) (*Txn, proto.Op, proto.Record) {
	g.zxid++
	tx := &Txn{Zxid: g.zxid, Time: g.zxid * 10, Session: int64(1 + g.Intn(4)), Policy: Policy(g.Intn(8))}
	tx.IDs = pick(g, []proto.ID{{Scheme: "ip", ID: "1.2.3.4"}}, []proto.ID{{Scheme: "ip", ID: "1.2.3.4"}, {Scheme: "digest", ID: "u:x"}}, []proto.ID{{Scheme: "super"}})
	switch g.Intn(12) {
	case 0:
		return tx, proto.OpCloseSession, nil
	case 1:
		if due := t.Reapable(tx.Time, 1, 10); len(due) > 0 {
			q := pick(g, due...)
			q.Czxid += int64(g.Intn(8) / 7)
			return tx, proto.OpDeleteContainer, &q
		}
		return tx, proto.OpDeleteContainer, &Reap{Path: g.path()}
	case 2, 3, 4:
		m := new(proto.MultiRequest)
		for range g.Intn(6) {
			op, req := g.op(true)
			m.Ops = append(m.Ops, proto.MultiOp{Op: op, Req: req})
			if !wellFormed(&m.Ops[len(m.Ops)-1]) {
				m.Ops = m.Ops[:len(m.Ops)-1]
			}
		}
		return tx, proto.OpMulti, m
	}
	op, req := g.op(false)
	return tx, op, req
}

// TestRandomTransactions compares every result with the model and, now and then, the
// whole tree.
func TestRandomTransactions(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		g, tree, m := newGenerator(seed), New(), newModel()
		for i := range 1500 {
			tx, op, req := g.next(tree)
			want := m.apply(tx, op, req)
			if err := want.differs(tree.Apply(tx, op, req)); err != nil {
				t.Fatalf("seed %d, transaction %d, %v %s: %v", seed, i, op, describe(req), err)
			}
			if i%100 == 0 {
				if err := m.compare(tree); err != nil {
					t.Fatalf("seed %d, after transaction %d, %v %s: %v", seed, i, op, describe(req), err)
				}
				if err := tree.Check(); err != nil {
					t.Fatalf("seed %d, after transaction %d, %v %s: %v", seed, i, op, describe(req), err)
				}
			}
		}
	}
}

// TestSnapshotsWhileWriting starts snapshots, sometimes several at a time, and writes
// them while transactions continue. It compares the restored trees with the model at the
// snapshots' zxids.
func TestSnapshotsWhileWriting(t *testing.T) {
	t.Parallel()
	for seed := range int64(10) {
		g, tree, m := newGenerator(100+seed), New(), newModel()
		run := func(n int) {
			for range n {
				tree.Lock()
				tx, op, req := g.next(tree)
				m.apply(tx, op, req)
				tree.Apply(tx, op, req)
				tree.Unlock()
			}
		}
		run(300)
		for range 5 {
			var pictures []picture
			var written sync.WaitGroup
			for range 1 + g.Intn(3) {
				tree.Lock()
				p := picture{snap: tree.Snapshot(), model: m.clone(), file: new(slowBuffer)}
				tree.Unlock()
				pictures = append(pictures, p)
				run(g.Intn(50))
				written.Go(func() {
					if _, err := p.snap.WriteTo(p.file); err != nil {
						t.Error(err)
					}
					p.snap.Release()
				})
				run(g.Intn(200))
			}
			written.Wait()
			for _, p := range pictures {
				p.verify(t)
			}
		}
		if err := tree.Check(); err != nil {
			t.Error(err)
		}
		if len(tree.snaps) > 0 {
			t.Error("snapshots are left")
		}
	}
}

// picture is a snapshot and its expected content.
type picture struct {
	snap  *Snapshot
	model *model
	file  *slowBuffer
}

// verify restores the snapshot over another tree.
func (p picture) verify(t *testing.T) {
	t.Helper()
	p.file.WriteString("what comes after it")
	tree := filled(t, 200)
	if err := tree.Restore(&p.file.Buffer); err != nil {
		t.Fatal(err)
	}
	if rest := p.file.String(); rest != "what comes after it" {
		t.Errorf("Restore leaves %q", rest)
	}
	if err := p.model.compare(tree); err != nil {
		t.Error(err)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// slowBuffer lets other goroutines run at every write.
type slowBuffer struct{ bytes.Buffer }

func (s *slowBuffer) Write(p []byte) (int, error) {
	var done sync.WaitGroup
	done.Go(func() {})
	done.Wait()
	return s.Buffer.Write(p)
}

// TestSnapshotSeesNothingNewer collects the nodes in small steps between transactions, so
// that many interleavings of collecting and writing occur.
func TestSnapshotSeesNothingNewer(t *testing.T) {
	t.Parallel()
	for seed := range int64(30) {
		g, tree, m := newGenerator(200+seed), New(), newModel()
		step := func() {
			tx, op, req := g.next(tree)
			m.apply(tx, op, req)
			tree.Apply(tx, op, req)
		}
		for range 400 {
			step()
		}
		s, want := tree.Snapshot(), m.clone()
		var batch []image
		for more := true; more; {
			for range 1 + g.Intn(10) {
				step()
			}
			var err error
			if batch, more, err = s.collect(batch, 1+g.Intn(8)); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]image{}
		for _, im := range batch {
			if _, twice := got[im.Path()]; twice {
				t.Fatalf("seed %d: %q twice", seed, im.Path())
			}
			got[im.Path()] = im
		}
		if len(got) != len(want.nodes) {
			t.Fatalf("seed %d: %d nodes instead of %d", seed, len(got), len(want.nodes))
		}
		for p, n := range want.nodes {
			im, ok := got[p]
			if !ok || im.Mzxid != n.mzxid || im.Pzxid != n.pzxid || im.Cversion != n.cv || !bytes.Equal(im.Data(), n.data) || int(im.kids) != len(want.children(p)) {
				t.Fatalf("seed %d: %q is %+v instead of %+v", seed, p, im, n)
			}
		}
		s.Release()
	}
}

// TestReplicasAgree applies the same transactions to two trees. Now and then it replaces
// a tree with a restored snapshot. Dumps and digests should agree.
func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	for seed := range int64(10) {
		g, a, b := newGenerator(300+seed), New(), New()
		for i := range 1000 {
			tx, op, req := g.next(a)
			a.Apply(tx, op, req)
			b.Apply(tx, op, req)
			if g.Intn(200) == 0 {
				b = restored(t, b)
			}
			if a.FullDigest() != b.FullDigest() || a.Digest() != b.Digest() {
				t.Fatalf("seed %d: digests differ after transaction %d, %v %s", seed, i, op, describe(req))
			}
		}
		if x, y := dumped(t, a), dumped(t, b); x != y {
			t.Fatalf("seed %d: dumps differ:\n%s\n%s", seed, x, y)
		}
	}
}

// restored returns a new tree from a snapshot of tree.
func restored(t testing.TB, tree *Tree) *Tree {
	t.Helper()
	again := New()
	if err := again.Restore(bytes.NewReader(written(t, tree))); err != nil {
		t.Fatal(err)
	}
	return again
}

// written returns a snapshot of tree.
func written(t testing.TB, tree *Tree) []byte {
	t.Helper()
	s := tree.Snapshot()
	defer s.Release()
	var b bytes.Buffer
	if n, err := s.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatal(n, b.Len(), err)
	}
	return b.Bytes()
}

func dumped(t testing.TB, tree *Tree) string {
	t.Helper()
	var b strings.Builder
	if err := tree.Dump(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

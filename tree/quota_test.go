package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// The results of enforced quotas with odd texts. They come from the real server.
func TestOddQuotas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits, stats string
		want          proto.Code
	}{
		{"countHardLimit=5", "count=5,bytes=0", proto.ErrQuotaExceeded},
		{"countHardLimit=6", "count=5,bytes=0", proto.Ok},
		{"count=1,bytes=1,countHardLimit=5", "count=5", proto.ErrQuotaExceeded},
		{"bytes=3=;countHardLimit=5=7,,x=y=", "count=5", proto.ErrMarshalling},
		{"bytes=3=;countHardLimit=5=7,,x=1=", "count=5", proto.ErrQuotaExceeded},
		{"countHardLimit==5", "count=5", proto.Ok}, // no number at all
		{"", "count=5", proto.Ok},
		{",;,", "count=5", proto.Ok},
		{"null", "count=5", proto.ErrMarshalling},
		{"garbage", "count=5", proto.ErrMarshalling},
		{"=", "count=5", proto.ErrMarshalling},
		{"=5", "count=5", proto.Ok},
		{"count=x", "count=5", proto.ErrMarshalling},
		{"countHardLimit=,byteHardLimit=1", "count=5", proto.ErrMarshalling},
		{",count=1", "count=5", proto.ErrMarshalling},
		{"countHardLimit=6", "garbage", proto.ErrMarshalling},
		{"countHardLimit=6", "null", proto.ErrMarshalling},
		{"count=1", "garbage", proto.ErrMarshalling},
		{"bytes=1", "garbage", proto.Ok}, // no limit for this change: the usage doesn't matter
		{"garbage", "none", proto.ErrMarshalling},
		{"countHardLimit=0", "none", proto.Ok},
	} {
		tree := New()
		open := proto.OpenACL()
		text := func(s string) []byte {
			if s == "null" {
				return nil
			}
			return []byte(s)
		}
		tx := &Txn{Zxid: 1}
		for _, path := range []string{"/q", "/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_limits", "/zookeeper/quota/q/zookeeper_stats"} {
			if c.stats != "none" || path != "/zookeeper/quota/q/zookeeper_stats" {
				must(t, tree.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: path, ACL: open, Data: text(c.limits)}))
			}
		}
		if c.stats != "none" {
			must(t, tree.Apply(tx, proto.OpSetData, &proto.SetDataRequest{Path: "/zookeeper/quota/q/zookeeper_stats", Data: text(c.stats), Version: -1}))
		}
		before := tree.Digest()
		tx = &Txn{Zxid: 2, Policy: EnforceQuota}
		create := &proto.CreateRequest{Path: "/q/x", ACL: open}
		if got := tree.Apply(tx, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreate, Req: create}, {Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/none"}}}}); got.Code != proto.Ok && got.Code != c.want {
			t.Errorf("limits %q, usage %q: multi %v, want %v", c.limits, c.stats, got.Code, c.want)
		}
		if tree.Digest() != before {
			t.Errorf("limits %q, usage %q: a refused multi changed the tree", c.limits, c.stats)
		}
		if got := tree.Apply(tx, proto.OpCreate, create).Code; got != c.want {
			t.Errorf("limits %q, usage %q: %v, want %v", c.limits, c.stats, got, c.want)
		}
		if got := tree.Apply(&Txn{Zxid: 3}, proto.OpCreate, &proto.CreateRequest{Path: "/q/y", ACL: open}).Code; got != proto.Ok {
			t.Errorf("limits %q, usage %q: not enforced, but %v", c.limits, c.stats, got)
		}
	}
}

func must(t *testing.T, r *Result) {
	t.Helper()
	if r.Code != proto.Ok {
		t.Fatal(r.Code)
	}
}

// quotas makes n quotas that allow one znode each, on /q0, /q1 and so on.
func quotas(tb testing.TB, n int) *Tree {
	tb.Helper()
	tree := New()
	tx := &Txn{}
	for i := range n {
		top := fmt.Sprintf("/q%d", i)
		for _, path := range []string{top, quotaPath + top, quotaPath + top + limitsName, quotaPath + top + statsName} {
			req := &proto.CreateRequest{Path: path, ACL: proto.OpenACL()}
			if strings.HasSuffix(path, limitsName) {
				req.Data = []byte("count=-1,bytes=-1=;countHardLimit=1")
			}
			tx.Zxid++
			if r := tree.Apply(tx, proto.OpCreate, req); r.Code != proto.Ok {
				tb.Fatal(path, r.Code)
			}
		}
	}
	return tree
}

// A multi should read only the quotas that it changes or that apply to it.
func TestAMultiReadsItsQuotasOnly(t *testing.T) {
	t.Parallel()
	tree := quotas(t, 200)
	tx := &Txn{Zxid: tree.LastZxid() + 1, Policy: EnforceQuota}
	x := exec{tree, tx}
	run := func(op proto.Op, req proto.Record, want proto.Code, read int) {
		t.Helper()
		var r Result
		if got := x.part(&proto.MultiOp{Op: op, Req: req}, &r); got != want {
			t.Errorf("%v: %v, want %v", op, got, want)
		}
		if len(tree.undo.quotas) != read {
			t.Errorf("after %v %d quotas are read, want %d", op, len(tree.undo.quotas), read)
		}
	}
	tree.begin(tx.Policy)
	run(proto.OpCheck, &proto.CheckVersionRequest{Path: "/q0", Version: -1}, proto.Ok, 0)
	run(proto.OpCreate, &proto.CreateRequest{Path: "/free", ACL: proto.OpenACL()}, proto.Ok, 0)
	run(proto.OpCreate, &proto.CreateRequest{Path: "/q7/x", ACL: proto.OpenACL()}, proto.ErrQuotaExceeded, 1)
	run(proto.OpSetData, &proto.SetDataRequest{Path: "/q7", Version: -1}, proto.Ok, 1)
	run(proto.OpDelete, &proto.DeleteRequest{Path: quotaPath + "/q8" + limitsName, Version: -1}, proto.Ok, 2)
	run(proto.OpCreate, &proto.CreateRequest{Path: "/q8/x", ACL: proto.OpenACL()}, proto.ErrQuotaExceeded, 2)
	tree.rollback()
	tree.end()
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// Within a multi quotas count as they were before it, whatever it does to them.
func TestQuotasThatAMultiChanges(t *testing.T) {
	t.Parallel()
	const limits, stats = quotaPath + "/q0" + limitsName, quotaPath + "/q0" + statsName
	create := func(path, data string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL()}}
	}
	set := func(path, data string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: path, Data: []byte(data), Version: -1}}
	}
	remove := func(path string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: path, Version: -1}}
	}
	for name, c := range map[string]struct {
		ops  []proto.MultiOp
		want proto.Code
	}{
		"higher limit":          {[]proto.MultiOp{set(limits, "countHardLimit=9")}, proto.ErrQuotaExceeded},
		"other usage":           {[]proto.MultiOp{set(stats, "count=0,bytes=0")}, proto.ErrQuotaExceeded},
		"no limit any more":     {[]proto.MultiOp{remove(limits)}, proto.ErrQuotaExceeded},
		"no usage any more":     {[]proto.MultiOp{remove(stats)}, proto.ErrQuotaExceeded},
		"nothing any more":      {[]proto.MultiOp{remove(stats), remove(limits)}, proto.ErrQuotaExceeded},
		"another limit":         {[]proto.MultiOp{remove(limits), create(limits, "countHardLimit=9")}, proto.ErrQuotaExceeded},
		"a new one below":       {[]proto.MultiOp{create(quotaPath+"/q0/x", ""), create(quotaPath+"/q0/x"+limitsName, "countHardLimit=9"), create(quotaPath+"/q0/x"+statsName, "")}, proto.ErrQuotaExceeded},
		"a new one on another":  {[]proto.MultiOp{create("/y", ""), create(quotaPath+"/y", ""), create(quotaPath+"/y"+limitsName, "countHardLimit=1"), create(quotaPath+"/y"+statsName, ""), create("/y/x", "")}, proto.ErrQuotaExceeded},
		"usage made by the way": {[]proto.MultiOp{create("/q1/x", "")}, proto.ErrQuotaExceeded},
	} {
		tree := quotas(t, 2)
		do := func(policy Policy, ops ...proto.MultiOp) proto.Code {
			r := tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Policy: policy}, proto.OpMulti, &proto.MultiRequest{Ops: ops})
			for _, part := range r.Multi {
				if part.Code != proto.Ok {
					return part.Code
				}
			}
			return r.Code
		}
		if got := do(EnforceQuota, append(c.ops, create("/q0/x", ""))...); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := do(0, append(c.ops, create("/q0/x", ""))...); got != proto.Ok {
			t.Errorf("%s: %v without enforcement", name, got)
		}
		if err := tree.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	tree := quotas(t, 1)
	ops := []proto.MultiOp{create("/y", ""), create(quotaPath+"/y", ""), create(quotaPath+"/y"+limitsName, "countHardLimit=1"), create(quotaPath+"/y"+statsName, ""), create("/y/x", "")}
	if r := tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Policy: EnforceQuota}, proto.OpMulti, &proto.MultiRequest{Ops: ops}); r.Multi[4].Code != proto.Ok {
		t.Errorf("a quota that the multi itself makes: %v", r.Multi[4].Code)
	}
}

// We should not read texts above the limit, whatever they contain.
func TestLongQuotaTexts(t *testing.T) {
	t.Parallel()
	text := func(numbers string, n int) []byte { return []byte(numbers + strings.Repeat(",", n-len(numbers))) }
	for _, c := range []struct {
		limits, stats int
		want          proto.Code
	}{
		{MaxQuotaText, MaxQuotaText, proto.Ok},
		{MaxQuotaText + 1, 10, proto.ErrMarshalling},
		{20, MaxQuotaText + 1, proto.ErrMarshalling},
	} {
		tree := quotas(t, 1)
		do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: quotaPath + "/q0" + limitsName, Data: text("countHardLimit=9", c.limits), Version: -1})
		do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: quotaPath + "/q0" + statsName, Data: text("count=1", c.stats), Version: -1})
		tx := &Txn{Zxid: tree.LastZxid() + 1, Policy: EnforceQuota}
		if got := tree.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: "/q0/x", ACL: proto.OpenACL()}).Code; got != c.want {
			t.Errorf("limits of %d bytes, usage of %d: %v, want %v", c.limits, c.stats, got, c.want)
		}
	}
}

func BenchmarkMultiAmongQuotas(b *testing.B) {
	for _, n := range []int{10, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tree := quotas(b, n)
			tx := &Txn{Zxid: tree.LastZxid(), Policy: EnforceQuota}
			req := &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: "/q0", Version: -1}}}}
			b.ReportAllocs()
			for b.Loop() {
				tx.Zxid++
				tree.Apply(tx, proto.OpMulti, req)
			}
		})
	}
}

// TestQuota: Quota returns the hard limits, or the soft ones where there is no hard
// limit, or −1 where there is no limit.
func TestQuota(t *testing.T) {
	t.Parallel()
	tr := New()
	if got := tr.QuotaPaths(); len(got) != 0 {
		t.Errorf("a new tree has %v", got)
	}
	zxid := int64(0)
	create := func(path, data string) {
		t.Helper()
		zxid++
		tx := &Txn{Zxid: zxid, Time: 1}
		if res := tr.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL()}); res.Code != proto.Ok {
			t.Fatalf("%s: %v", path, res.Code)
		}
	}
	create("/a", "four")
	create("/a/b", "")
	create("/zookeeper/quota/a", "")
	create("/zookeeper/quota/a/zookeeper_limits", "count=5,bytes=-1=;byteHardLimit=100")
	create("/zookeeper/quota/a/zookeeper_stats", "count=0,bytes=0")
	want := QuotaUse{Path: "/a", CountLimit: 5, BytesLimit: 100, Count: 2, Bytes: 4}
	if got := tr.QuotaPaths(); !slices.Equal(got, []string{"/a"}) {
		t.Errorf("%q", got)
	}
	if got, ok := tr.Quota("/a"); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, ok := tr.Quota("/b"); ok {
		t.Errorf("%+v", got)
	}
}

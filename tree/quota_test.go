package tree

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// The results of enforced quotas with odd texts. They are those of the real server.
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

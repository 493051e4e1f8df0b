package tree

import (
	"slices"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

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

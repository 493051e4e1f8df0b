package tree

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// loaded passes b to a Loading in pieces of the given size.
func loaded(b []byte, size int) (*Tree, error) {
	g := NewLoading()
	for len(b) > 0 {
		n := min(size, len(b))
		if _, err := g.Write(b[:n]); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return g.Tree()
}

// After Adopt, the tree equals the other one in every index and total, except for the
// membership znode.
func TestAdopt(t *testing.T) {
	t.Parallel()
	source := varied(t)
	for i := range 9 { // blocks that are larger than usual
		do(t, source, proto.OpCreate, &proto.CreateRequest{Path: "/a/large-" + string(rune('a'+i)), Data: make([]byte, 300_000), ACL: proto.OpenACL()})
	}
	content := written(t, source)
	for _, size := range []int{1000, 123_456, len(content)} {
		other, err := loaded(content, size)
		if err != nil {
			t.Fatalf("in pieces of %d: %v", size, err)
		}
		tree := filled(t, 300)
		tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Policy: SkipACL}, proto.OpSetACL, &proto.SetACLRequest{Path: ConfigPath, ACL: list("1 digest me:x"), Version: -1})
		tree.SetConfig(&Txn{Zxid: tree.LastZxid() + 1, Time: 7}, []byte("server.1=mine"), 5)
		var was, is proto.Stat
		tree.Get(ConfigPath).Stat(&was)
		tree.Lock()
		stale := tree.Snapshot()
		tree.Adopt(other, true)
		tree.Unlock()
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
		n := tree.Get(ConfigPath)
		if n.Stat(&is); is != was || string(n.Data()) != "server.1=mine" || n.ACL()[0].ID.ID != "me:x" {
			t.Errorf("the membership is %q %+v %v", n.Data(), is, n.ACL())
		}
		if tree.Digest() != source.Digest() || tree.LastZxid() != source.LastZxid() || tree.EphemeralCount() != source.EphemeralCount() {
			t.Errorf("digest %x at %x, of the other tree %x at %x", tree.Digest(), tree.LastZxid(), source.Digest(), source.LastZxid())
		}
		if _, err := stale.WriteTo(new(bytes.Buffer)); err == nil {
			t.Error("a snapshot of the old content holds the new one")
		}
		stale.Release()
		// The tree should work like any other, including snapshots.
		tree.Lock()
		snap := tree.Snapshot()
		tree.Unlock()
		before := tree.FullDigest()
		do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("later"), Version: -1})
		var b bytes.Buffer
		if _, err := snap.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		snap.Release()
		again := New()
		if err := again.Restore(&b); err != nil || again.FullDigest() != before {
			t.Errorf("a snapshot after it: %v, digest %x instead of %x", err, again.FullDigest(), before)
		}
	}
}

// Loading should find any damage, either immediately or at the end of the bytes.
func TestLoadingOfDamage(t *testing.T) {
	t.Parallel()
	content := written(t, varied(t))
	for i := range content {
		b := bytes.Clone(content)
		b[i] ^= 0x10
		if _, err := loaded(b, 100); err == nil {
			t.Fatalf("byte %d flipped, and nobody minds", i)
		}
		if _, err := loaded(content[:i], 100); err == nil || !strings.Contains(err.Error(), "ends early") {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := loaded(append(content, 0), 100); err == nil || !strings.Contains(err.Error(), "after the end") {
		t.Errorf("more at the end: %v", err)
	}
	g := NewLoading()
	if _, err := g.Write([]byte("nonsense, all of it")); err == nil {
		t.Error("nonsense")
	}
	if _, err := g.Write(content); err == nil {
		t.Error("it goes on after an error")
	}
}

package tree

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// TestStored compares the znodes of a snapshot with the tree as it was at the start of
// the snapshot, while the tree keeps changing.
func TestStored(t *testing.T) {
	t.Parallel()
	tree := varied(t)
	before := dumped(t, tree)
	digest, count := tree.Digest(), tree.NodeCount()-1
	s := tree.Snapshot()
	tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Time: 1}, proto.OpCreate, &proto.CreateRequest{Path: "/later", ACL: proto.OpenACL()})
	tree.Apply(&Txn{Zxid: tree.LastZxid() + 1, Time: 1}, proto.OpSetData, &proto.SetDataRequest{Path: "/", Data: []byte("later"), Version: -1})
	nodes, err := s.Stored()
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	for range 2 { // the sequence can be walked again
		seen, last, sum := 0, "", uint64(0)
		back := New()
		err := back.Import(s.Zxid(), 0, func(int64) bool { return false }, func(yield func(*Stored, error) bool) {
			for n := range nodes {
				if seen++; n.Path <= last {
					t.Errorf("%q comes after %q", n.Path, last)
				}
				last = n.Path
				sum += n.Digest()
				if !yield(n, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := dumped(t, back); got != before {
			t.Errorf("got\n%s\nwant\n%s", got, before)
		}
		if seen != count || seen != s.Len() || sum != digest || s.Digest() != digest {
			t.Errorf("%d nodes with digest %#x, the snapshot says %d and %#x; want %d and %#x", seen, sum, s.Len(), s.Digest(), count, digest)
		}
	}
}

// TestStoredAfterRelease: Stored fails for a snapshot that was released or written.
func TestStoredAfterRelease(t *testing.T) {
	t.Parallel()
	tree := varied(t)
	s := tree.Snapshot()
	s.Release()
	if _, err := s.Stored(); err == nil {
		t.Error("a released snapshot")
	}
	s = tree.Snapshot()
	defer s.Release()
	if _, err := s.WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stored(); err == nil || !strings.Contains(err.Error(), "instead of") {
		t.Errorf("a written snapshot: %v", err)
	}
}

func TestIsEphemeral(t *testing.T) {
	t.Parallel()
	sessions := func(id int64) bool { return slices.Contains([]int64{5, -1 << 56}, id) }
	for _, c := range []struct {
		owner int64
		p     Policy
		want  bool
	}{
		{0, 0, false}, {5, 0, true}, {6, 0, true}, {-1 << 63, 0, false}, {-1<<56 | 1000, 0, false}, {-1 << 56, 0, true},
		{-1<<63 | 1000, 0, true}, {-1<<63 | 1000, Emulate353TTL, false},
	} {
		if got := IsEphemeral(c.owner, c.p, sessions); got != c.want {
			t.Errorf("IsEphemeral(%#x, %d): %v", uint64(c.owner), c.p, got)
		}
	}
}

package zkfiles

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

const (
	alice = 0x1000000000000a1
	bob   = 0x2000000000000b2
)

// sample returns a tree with znodes of every kind, and the sessions that own its ephemeral znodes.
func sample(t *testing.T) (*tree.Tree, *session.Table) {
	t.Helper()
	tr, zxid := tree.New(), int64(0x100000000)
	apply := func(id int64, op proto.Op, req proto.Record) {
		t.Helper()
		zxid++
		tx := &tree.Txn{Zxid: zxid, Time: 1700000000000 + zxid&0xffff, Session: id, Policy: tree.ExtendedTypes}
		if r := tr.Apply(tx, op, req); r.Code != proto.Ok {
			t.Fatalf("%v %+v: %v", op, req, r.Code)
		}
	}
	open := proto.OpenACL()
	lists := [][]proto.ACL{open, {{Perms: 1, ID: proto.ID{Scheme: "world", ID: "anyone"}}, {Perms: 31, ID: proto.ID{Scheme: "digest", ID: "u:x="}}}, {{Perms: 4, ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}}
	create := func(id int64, path string, data []byte, acl []proto.ACL, flags int32) {
		t.Helper()
		apply(id, proto.OpCreate, &proto.CreateRequest{Path: path, Data: data, ACL: acl, Flags: flags})
	}
	create(alice, "/a", []byte("data"), open, 0)
	create(alice, "/a/null", nil, lists[1], 0)
	create(alice, "/a/empty", []byte{}, lists[2], 0)
	create(alice, "/a/seq-", []byte("s"), lists[1], 2)
	create(alice, "/a/eph", []byte("e"), open, 1)
	create(bob, "/a-b", []byte("sorts between /a and its children"), open, 0)
	create(bob, "/a/bob", nil, open, 1)
	create(bob, "/größe", bytes.Repeat([]byte("0123456789abcdef"), 8<<10), open, 0)
	apply(bob, proto.OpCreateContainer, &proto.CreateRequest{Path: "/box", ACL: open, Flags: 4})
	apply(bob, proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/ttl", ACL: open, Flags: 5, TTL: 60000})
	create(bob, "/zookeeper/quota/a", nil, open, 0)
	create(bob, "/zookeeper/quota/a/zookeeper_limits", []byte("count=100,bytes=-1"), open, 0)
	create(bob, "/zookeeper/quota/a/zookeeper_stats", []byte("count=0,bytes=0"), open, 0)
	apply(bob, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("newer"), Version: -1})
	apply(bob, proto.OpDelete, &proto.DeleteRequest{Path: "/a/empty", Version: -1})
	apply(bob, proto.OpSetACL, &proto.SetACLRequest{Path: "/box", ACL: lists[2], Version: -1})
	must.Do(t, tr.Check())
	table := session.NewTable()
	table.Put(session.Session{ID: alice, Timeout: 4000, Password: Password(alice), Gen: 1, Server: 1})
	table.Put(session.Session{ID: bob, Timeout: 40000, Password: Password(bob), Gen: 1, Server: 1})
	return tr, table
}

// dump returns the contents of a tree and a table as text.
func dump(t *testing.T, tr *tree.Tree, table *session.Table) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, tr.Dump(&b))
	for row := range table.All {
		fmt.Fprintf(&b, "session %#x timeout %d password %x\n", row.ID, row.Timeout, row.Password)
	}
	return b.String()
}

func written(t *testing.T, tr *tree.Tree, table *session.Table, c Compression) []byte {
	t.Helper()
	tr.Lock()
	snap := tr.Snapshot()
	tr.Unlock()
	defer snap.Release()
	var b bytes.Buffer
	must.Do(t, WriteSnapshot(&b, snap, table, c))
	return b.Bytes()
}

func TestSnapshotThereAndBack(t *testing.T) {
	t.Parallel()
	tr, table := sample(t)
	for _, c := range []Compression{None, Gzip, Snappy} {
		b := written(t, tr, table, c)
		back, sessions := tree.New(), session.NewTable()
		info, err := ReadSnapshot("snapshot.1", bytes.NewReader(b), 0, Limits{}, back, sessions)
		if err != nil {
			t.Fatalf("%q: %v", c, err)
		}
		if got, want := dump(t, back, sessions), dump(t, tr, table); got != want {
			t.Errorf("%q:\n got %s\nwant %s", c, got, want)
		}
		if err := back.Check(); err != nil {
			t.Error(err)
		}
		if !info.Verified || info.Compression != c || info.LastZxid != tr.LastZxid() || info.Nodes != tr.NodeCount()-1 || info.Sessions != 2 {
			t.Errorf("%q: %+v", c, info)
		}
	}
}

// TestSnapshotWithoutTheLaterParts reads the formats of ZooKeeper before 3.6 and
// before 3.9, and one with digests disabled.
func TestSnapshotWithoutTheLaterParts(t *testing.T) {
	t.Parallel()
	tr, table := sample(t)
	b := written(t, tr, table, None)
	for name, cut := range map[string][]byte{
		"before 3.9": b[:len(b)-lastZxidSize],
		"before 3.6": b[:len(b)-lastZxidSize-digestSize],
	} {
		back, sessions := tree.New(), session.NewTable()
		must.Get(ReadSnapshot("data/"+SnapshotName(tr.LastZxid(), None), bytes.NewReader(cut), 0, Limits{}, back, sessions))(t)
		if back.Digest() != tr.Digest() || back.LastZxid() != tr.LastZxid() {
			t.Errorf("%s: digest %#x zxid %#x", name, back.Digest(), back.LastZxid())
		}
	}
}

// TestEveryDamageIsFound truncates a snapshot at every length and flips its bytes. We
// should accept none of the results.
func TestEveryDamageIsFound(t *testing.T) {
	t.Parallel()
	tr := tree.New()
	for i := range 3 {
		tr.Apply(&tree.Txn{Zxid: int64(i + 1), Time: 5, Session: alice}, proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprint("/n", i), Data: []byte("data"), ACL: proto.OpenACL(), Flags: int32(i & 1)})
	}
	table := session.NewTable()
	table.Put(session.Session{ID: alice, Timeout: 4000})
	b := written(t, tr, table, None)
	read := func(b []byte) error {
		_, err := ReadSnapshot("snapshot.3", bytes.NewReader(b), 0, Limits{}, tree.New(), session.NewTable())
		return err
	}
	must.Do(t, read(b))
	whole := map[int]bool{len(b): true, len(b) - lastZxidSize: true, len(b) - lastZxidSize - digestSize: true}
	for n := range b {
		if err := read(b[:n]); err == nil && !whole[n] {
			t.Errorf("the first %d of %d bytes were taken for a snapshot", n, len(b))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= byte(1 << r.IntN(8))
		// The database id isn't used, but the checksum covers it.
		if err := read(damaged); err == nil {
			t.Errorf("a flipped bit in byte %d of %d was not noticed", i, len(b))
		} else if !strings.Contains(err.Error(), "snapshot.3") {
			t.Errorf("the error does not name the file: %v", err)
		}
	}
	if err := read(append(bytes.Clone(b), 0)); err == nil {
		t.Error("a byte after the end was not noticed")
	}
}

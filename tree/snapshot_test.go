package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// varied returns a tree with every kind of znode.
func varied(t testing.TB) *Tree {
	tree := New()
	plant(t, tree, 0, "/a", "/a/b", "/a/b/c", "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats")
	plant(t, tree, proto.ModeEphemeral, "/eph", "/a/eph")
	do(t, tree, proto.OpCreateContainer, &proto.CreateRequest{Path: "/c", ACL: list("31 world anyone", "1 digest a:b"), Flags: 4})
	do(t, tree, proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/t", ACL: list("1 ip 1.2.3.4"), Flags: 5, TTL: 77})
	do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: "/a/b", Data: []byte{}, Version: -1})
	return tree
}

func TestSnapshotRoundTrip(t *testing.T) {
	t.Parallel()
	tree := varied(t)
	file := written(t, tree)
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(file), "byte by byte": iotest.OneByteReader(bytes.NewReader(file))} {
		again := filled(t, 300)
		if err := again.Restore(r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := again.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if a, b := dumped(t, tree), dumped(t, again); a != b {
			t.Errorf("%s: dumps differ:\n%s\n%s", name, a, b)
		}
		if again.FullDigest() != tree.FullDigest() || again.LastZxid() != tree.LastZxid() {
			t.Errorf("%s: digests differ", name)
		}
	}
}

// TestSnapshotDuringChanges changes every node after it starts a snapshot and
// before it writes it. All nodes are images then, and no list of images has been copied
// to grow.
func TestSnapshotDuringChanges(t *testing.T) {
	t.Parallel()
	tree := filled(t, 5*collectTarget+7)
	before := dumped(t, tree)
	s := tree.Snapshot()
	defer s.Release()
	var paths []string
	for n := range tree.arena.All {
		if n.Path() != ConfigPath { // read-only
			paths = append(paths, n.Path())
		}
	}
	for i, path := range paths {
		if i%2 == 0 && tree.Get(path).NumChildren() == 0 && !undeletable(path) {
			do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1})
		} else {
			do(t, tree, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: []byte("changed"), Version: -1})
		}
	}
	images := 0
	for _, piece := range s.images {
		images += len(piece)
		if cap(piece) != collectTarget {
			t.Errorf("a piece has room for %d images", cap(piece))
		}
	}
	if images != len(paths) {
		t.Errorf("%d images of %d nodes", images, len(paths))
	}
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if after := dumped(t, again); after != before {
		t.Error("the snapshot shows another state than that in which it was taken")
	}
}

// While a snapshot is written, whole blocks of nodes are released, and new nodes get the
// slots and numbers of old ones, before and after the writer's position. The snapshot
// should contain exactly the nodes that existed at its start.
func TestSnapshotWhileNodesArePutElsewhere(t *testing.T) {
	t.Parallel()
	for _, seen := range []int{0, 1, 700, 2900} {
		tree := filled(t, 3000)
		want := map[string]int64{}
		var leaves []string
		for n := range tree.arena.All {
			want[n.Path()] = n.State().Mzxid
			if n.NumChildren() == 0 && !undeletable(n.Path()) {
				leaves = append(leaves, n.Path())
			}
		}
		s := tree.Snapshot()
		got, more, err := s.collect(nil, seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range leaves {
			do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1})
		}
		if blocks := tree.arena.Blocks(); blocks > 3 {
			t.Fatalf("%d blocks are left", blocks)
		}
		for range 4000 {
			do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/dir5/new", Flags: int32(proto.ModePersistentSequential), ACL: proto.OpenACL()})
		}
		for more {
			if got, more, err = s.collect(got, collectTarget); err != nil {
				t.Fatal(err)
			}
		}
		for i := range got {
			if mzxid, there := want[got[i].Path()]; !there || mzxid != got[i].Mzxid {
				t.Fatalf("after %d: %q of %#x is too much", seen, got[i].Path(), got[i].Mzxid)
			}
			delete(want, got[i].Path())
		}
		if len(want) > 0 {
			t.Errorf("after %d: %d nodes are missing", seen, len(want))
		}
		s.Release()
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Large nodes need larger blocks and reads than usual.
func TestSnapshotOfLargeNodes(t *testing.T) {
	t.Parallel()
	tree := New()
	for _, path := range []string{"/a", "/b", "/c"} {
		do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: path, Data: bytes.Repeat([]byte(path), 2<<20), ACL: proto.OpenACL()})
	}
	if a, b := tree.FullDigest(), restored(t, tree).FullDigest(); a != b {
		t.Errorf("digests %x and %x", a, b)
	}
}

// Restore and Loading should use the memory of a block again.
func TestSnapshotOfManyBlocks(t *testing.T) {
	t.Parallel()
	tree := filled(t, 2*blocksAhead*blockTarget/100)
	file := written(t, tree)
	if n := len(file); n < 2*blocksAhead*blockTarget {
		t.Fatalf("%d bytes", n)
	}
	again := restored(t, tree)
	pieces, err := loaded(file, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := tree.FullDigest(), again.FullDigest(), pieces.FullDigest(); a != b || a != c {
		t.Errorf("digests %x, %x and %x", a, b, c)
	}
}

// TestScan: Scan should return the digest of the tree that Restore builds, and read no
// more.
func TestScan(t *testing.T) {
	t.Parallel()
	for _, tree := range []*Tree{New(), varied(t)} {
		in := bytes.NewReader(append(written(t, tree), "rest"...))
		if digest, err := Scan(in); err != nil || digest != tree.FullDigest() || in.Len() != len("rest") {
			t.Errorf("digest %#x, %v, with %d bytes left; want %#x", digest, err, in.Len(), tree.FullDigest())
		}
	}
}

// Restore and Scan should notice a flipped bit in any byte and any truncation.
func TestDamagedSnapshots(t *testing.T) {
	t.Parallel()
	file := written(t, varied(t))
	fresh := dumped(t, New())
	refuse := func(what string, i int, b []byte) {
		tree := New()
		err := tree.Restore(bytes.NewReader(b))
		if err == nil {
			t.Fatalf("%s %d was not noticed", what, i)
		}
		if _, err := Scan(bytes.NewReader(b)); err == nil {
			t.Fatalf("Scan does not notice %s %d", what, i)
		}
		if !strings.HasPrefix(err.Error(), "tree: ") {
			t.Errorf("%s %d: %v", what, i, err)
		}
		if dumped(t, tree) != fresh || tree.Check() != nil {
			t.Fatalf("%s %d left something", what, i)
		}
	}
	for i := range file {
		b := bytes.Clone(file)
		b[i] ^= 1 << (i % 8)
		refuse("flipped byte", i, b)
		refuse("cut", i, file[:i])
	}
	if err := New().Restore(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if err := New().Restore(bytes.NewReader(nil)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// forged returns a snapshot with the given payloads and correct checksums.
func forged(blocks ...[]byte) []byte {
	b := []byte(magic)
	crc := uint32(0)
	for _, p := range blocks {
		crc = crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(binary.BigEndian.AppendUint32(b, crc), p...)
	}
	return b
}

// Restore should refuse a snapshot with correct checksums and wrong content, and the
// error should state the reason.
func TestForgedSnapshots(t *testing.T) {
	t.Parallel()
	header := func(n int64) []byte { return proto.AppendLong(proto.AppendLong([]byte{tagHeader}, 9), n) }
	acl := proto.AppendACLs(proto.AppendInt([]byte{tagList}, 0), proto.OpenACL())
	node := func(path string, kids int32, change func(record []byte)) []byte {
		b := appendNode(nil, &arena.State{Text: arena.NewText(arena.Persistent, 0, path, nil)}, 0, kids)
		if change != nil {
			change(b)
		}
		return b
	}
	// The records end with the owner, three versions, the kind and the number of children.
	kindAt := func(b []byte) *byte { return &b[len(b)-5] }
	ownerAt := func(b []byte) *byte { return &b[len(b)-18] }
	listAt := func(b []byte) *byte { return &b[len(b)-66] }
	trailer := func(n int64) []byte {
		return proto.AppendLong(proto.AppendLong(proto.AppendLong([]byte{tagTrailer}, n), 1), 2)
	}
	own := slices.Concat(header(4), acl, node("/", 1, nil), node("/zookeeper", 2, nil), node("/zookeeper/quota", 0, nil), node("/zookeeper/config", 0, nil))
	with := func(n int64, parts ...[]byte) []byte { return slices.Concat(append([][]byte{own}, parts...)...) }
	for want, b := range map[string][]byte{
		"it starts with":                      []byte("zkgotre0"),
		"ZooKeeper's digest is":               with(4, trailer(4)),
		"record with tag 1 out of place":      with(4, header(4)),
		"record with tag 3 out of place":      node("/", 0, nil),
		"record with tag 4 out of place":      trailer(4),
		"unknown tag 77":                      with(4, []byte{77}),
		"record ends early":                   with(4, []byte{tagNode, 0}),
		"left: proto: record ends early":      with(4, []byte{tagNode, 0, 0, 0, 9}),
		"access control list 5 in place of 1": with(4, proto.AppendInt([]byte{tagList}, 5), proto.AppendACLs(nil, nil)),
		"unknown access control list 3":       with(4, node("/x", 0, func(b []byte) { *listAt(b) = 3 })),
		"has -1 children":                     with(4, node("/x", -1, nil)),
		"unknown kind 4":                      with(4, node("/x", 0, func(b []byte) { *kindAt(b) = 4 })),
		"has the owner 0x5":                   with(4, node("/x", 0, func(b []byte) { *ownerAt(b) = 5 })),
		"of kind 1 has the owner 0x0":         with(4, node("/x", 0, func(b []byte) { *kindAt(b) = byte(arena.Ephemeral) })),
		"impossible path":                     with(4, node("x", 0, nil)),
		"occurs twice":                        with(4, node("/zookeeper", 0, nil)),
		"is missing, but not its":             with(4, node("/x/y", 0, nil), trailer(4)),
		`"/zookeeper" is missing`:             slices.Concat(header(1), acl, node("/", 0, nil), trailer(1)),
		`"/" is missing`:                      slices.Concat(header(1), acl, node("/zookeeper", 0, nil), trailer(1)),
		"the header says 4 and the trailer 5": with(4, trailer(5)),
		"5 nodes where the header says 4":     with(4, node("/x", 0, nil), trailer(5)),
		"has 0 children instead of 3":         slices.Concat(header(4), acl, node("/", 1, nil), node("/zookeeper", 2, nil), node("/zookeeper/quota", 3, nil), node("/zookeeper/config", 0, nil), trailer(4)),
		"add up to 3 with 5 nodes":            slices.Concat(header(5), own[len(header(0)):], node("/zookeeper/quota/x", 0, nil), trailer(5)),
		"is ephemeral and has children":       with(4, node("/e", 1, func(b []byte) { *kindAt(b), *ownerAt(b) = byte(arena.Ephemeral), 5 }), node("/e/x", 0, nil), trailer(6)),
		"the digest is":                       with(4, slices.Concat([]byte{tagTrailer}, rightDigest(t, own))),
	} {
		if want == "it starts with" {
			b = append([]byte{}, b...)
		} else {
			b = forged(b)
		}
		tree := New()
		if err := tree.Restore(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if err := tree.Check(); err != nil {
			t.Error(err)
		}
		if _, err := Scan(bytes.NewReader(b)); err == nil {
			t.Errorf("%q: Scan finds nothing", want)
		}
	}
	if err := New().Restore(bytes.NewReader(forged(own, []byte{}, trailer(4)))); err == nil || !strings.Contains(err.Error(), "block 3") {
		t.Errorf("the block is not named: %v", err)
	}
}

// Restore should name a block with an error, although it has read later ones, and end its
// goroutine.
func TestRestoreEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	root := appendNode(nil, &arena.State{Text: arena.NewText(arena.Persistent, 0, rootPath, nil)}, 0, 0)
	blocks := make([][]byte, 3*blocksAhead)
	blocks[0] = slices.Concat(proto.AppendLong([]byte{tagHeader}, 9), proto.AppendLong(nil, 4), proto.AppendACLs(proto.AppendInt([]byte{tagList}, 0), proto.OpenACL()), root)
	blocks[1] = root
	synctest.Test(t, func(t *testing.T) {
		err := New().Restore(bytes.NewReader(forged(blocks...)))
		if err == nil || !strings.Contains(err.Error(), "block 2: node \"/\" occurs twice") {
			t.Error(err)
		}
	})
}

// rightDigest returns the fields of a trailer with the correct ZooKeeper digest.
func rightDigest(t *testing.T, own []byte) []byte {
	tree := New()
	err := tree.Restore(bytes.NewReader(forged(own, proto.AppendLong(proto.AppendLong(proto.AppendLong([]byte{tagTrailer}, 4), 0), 0))))
	if err == nil {
		t.Fatal("digest 0 is right?")
	}
	_, hex, _ := strings.Cut(err.Error(), "digest is 0x")
	hex, _, _ = strings.Cut(hex, " ")
	var digest int64
	for _, c := range hex {
		digest = digest<<4 | int64(strings.IndexRune("0123456789abcdef", c))
	}
	return proto.AppendLong(proto.AppendLong(proto.AppendLong(nil, 4), digest), 0)
}

// failAfter is a writer that fails after n writes.
type failAfter int

func (f *failAfter) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestSnapshotErrors(t *testing.T) {
	t.Parallel()
	tree := New()
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/a", Data: make([]byte, blockTarget), ACL: proto.OpenACL()})
	do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/b", Data: make([]byte, blockTarget), ACL: proto.OpenACL()})
	for n := range failAfter(4) {
		w := n
		s := tree.Snapshot()
		if _, err := s.WriteTo(&w); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("failing at write %d: %v", n, err)
		}
		s.Release()
	}
	s := tree.Snapshot()
	if s.Zxid() != tree.LastZxid() {
		t.Error("zxid")
	}
	s.Release()
	s.Release()
	if _, err := s.WriteTo(io.Discard); !errors.Is(err, errReleased) {
		t.Error(err)
	}
	s = tree.Snapshot()
	if err := tree.Restore(bytes.NewReader(written(t, New()))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteTo(io.Discard); !errors.Is(err, errReplaced) {
		t.Error(err)
	}
	s = tree.Snapshot()
	s.count++
	if _, err := s.WriteTo(io.Discard); err == nil || !strings.Contains(err.Error(), "found 4 nodes instead of 5") {
		t.Error(err)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	open := proto.OpenACL()
	nodes := []*Stored{
		{Path: "/q/x", Data: []byte("123"), ACL: open},
		{Path: "/q/session", ACL: open, Owner: 5},
		{Path: "/q/server255", ACL: open, Owner: -1<<56 | 9},
		{Path: "/q", ACL: open, Cversion: 4},
		{Path: "", ACL: open},
		{Path: "/zookeeper/quota", ACL: open},
		{Path: "/zookeeper/quota/q", ACL: open},
		{Path: "/zookeeper/quota/q/zookeeper_limits", Data: []byte("count=1"), ACL: open},
		{Path: "/zookeeper/quota/q/zookeeper_stats", Data: []byte("count=99,bytes=99"), ACL: open},
		{Path: "/ttl", ACL: open, Owner: -1<<56 | 1234},
		{Path: "/old", ACL: open, Owner: -1<<63 | 77},
		{Path: "/container", ACL: nil, Owner: -1 << 63, Pzxid: 8},
	}
	seq := func(fail error) func(func(*Stored, error) bool) {
		return func(yield func(*Stored, error) bool) {
			for _, n := range nodes {
				if !yield(n, nil) {
					return
				}
			}
			if fail != nil {
				yield(nil, fail)
			}
		}
	}
	tree := New()
	known := func(id int64) bool { return id == 5 || id == -1<<56|9 }
	if err := tree.Import(77, Emulate353TTL, known, seq(nil)); err != nil {
		t.Fatal(err)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
	if got := string(tree.Get("/zookeeper/quota/q/zookeeper_stats").Data()); got != "count=4,bytes=3" {
		t.Errorf("usage %q", got)
	}
	for path, want := range map[string]arena.Kind{"/q": arena.Persistent, "/q/session": arena.Ephemeral, "/q/server255": arena.Ephemeral, "/ttl": arena.TTL, "/old": arena.TTL, "/container": arena.Container} {
		if n := tree.get(path); n.Kind() != want {
			t.Errorf("%s is of kind %d", path, n.Kind())
		}
	}
	if timeToLive(tree.get("/ttl")) != 1234 || timeToLive(tree.get("/old")) != 77 || timeToLive(tree.get("/q")) != 0 || tree.LastZxid() != 77 {
		t.Error("times to live")
	}
	if n := tree.get(ConfigPath); n == nil || n.State().Aversion != -1 || n.State().ACL.List()[0].Perms != proto.PermRead {
		t.Error("the config znode")
	}
	if a, b := dumped(t, tree), dumped(t, restored(t, tree)); a != b {
		t.Errorf("a snapshot of it differs:\n%s\n%s", a, b)
	}
	if err := tree.Import(1, 0, known, seq(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) || tree.NodeCount() != 5 {
		t.Error(err)
	}
	nodes[0].Path = "/r/x"
	if err := tree.Import(1, 0, known, seq(nil)); err == nil || !strings.Contains(err.Error(), `"/r" is missing`) {
		t.Error(err)
	}
	nodes[0].Path = "r"
	if err := tree.Import(1, 0, known, seq(nil)); err == nil || !strings.Contains(err.Error(), "impossible path") {
		t.Error(err)
	}
}

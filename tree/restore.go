package tree

import (
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// errReplaced reports that the content of a snapshot's tree was replaced.
var errReplaced = errors.New("tree: the tree was replaced by a restored one")

// Restore replaces the content of the tree with the snapshot in r. It reads no byte after
// the snapshot. Snapshots of the old content that aren't written yet fail. We drop the
// old content first, so that two trees are never in memory. After an error, the tree is a
// fresh tree, and the caller must not use it.
func (t *Tree) Restore(r io.Reader) error { return t.replace(func() error { return t.load(r) }) }

// replace empties the tree and calls load to fill it again. After an error the tree
// is a fresh one.
func (t *Tree) replace(load func() error) error {
	t.forget()
	t.reset()
	err := load()
	if err != nil {
		t.reset()
		t.plantAll()
	}
	return err
}

// forget drops the references to old nodes. Snapshots that aren't written yet fail.
func (t *Tree) forget() {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	t.result, t.undo, t.aclBuf, t.recalled, t.measured = Result{}, journal{}, nil, nil, measured{}
}

// decoder decodes the blocks of a snapshot. It alone uses the table of lists until the last
// node is placed.
type decoder struct {
	blocks blockReader
	acls   *acl.Table
	lists  []*acl.Entry
	begun  bool
	ended  bool
}

// decoded is the content of a block.
type decoded struct {
	block   int // its number
	err     error
	header  *header // nil unless the block has it; first
	nodes   []record
	trailer *trailer // nil unless the block has it; last
}

// header is the first record of a snapshot.
type header struct{ zxid, want int64 }

// trailer is the last record of a snapshot.
type trailer struct {
	count        int64
	digest, full uint64
}

// record is the record of a node.
type record struct {
	arena.State
	kids int32
}

// loader builds a tree from records. Nodes come in any order: if we haven't read a parent's
// record yet, the parent is in the tree as a blank.
type loader struct {
	t *Tree
	decoder
	blanks int             // nodes without a list: their record hasn't come yet
	kids   map[*node]int32 // number of children in a node's record, unless 0
	want   int64           // nodes that the header announces
	room   int64           // children for which memory may still be reserved
}

// load reads a snapshot into the empty tree t.
func (t *Tree) load(r io.Reader) error {
	var m [len(magic)]byte
	if _, err := io.ReadFull(r, m[:]); err != nil {
		return fmt.Errorf("tree: reading the start of a snapshot: %w", noEOF(err))
	}
	if string(m[:]) != magic {
		return wrongMagic(m[:])
	}
	l := newLoader(t, r)
	return l.load()
}

// blocksAhead is the number of blocks in memory while a snapshot is loaded.
const blocksAhead = 4

// load decodes blocks on one goroutine and places their nodes on another: each takes about
// half of the time.
func (l *loader) load() error {
	spare, full := make(chan *decoded, blocksAhead), make(chan *decoded, blocksAhead)
	for range blocksAhead {
		spare <- new(decoded)
	}
	go func() {
		defer close(full)
		for b := range spare {
			l.next(b)
			full <- b
			if b.err != nil || l.ended {
				return
			}
		}
	}()
	for b := range full {
		if err := l.take(b); err != nil {
			close(spare)
			for range full { // wait for the decoder
			}
			return err
		}
		spare <- b
	}
	return nil
}

func newLoader(t *Tree, r io.Reader) loader {
	return loader{t: t, decoder: decoder{blocks: blockReader{r: r}, acls: &t.acls}, kids: make(map[*node]int32)}
}

func wrongMagic(found []byte) error {
	return fmt.Errorf("tree: not a snapshot or one of another version: it starts with %q instead of %q", found, magic)
}

// next reads and decodes the next block into b.
func (c *decoder) next(b *decoded) {
	payload, err := c.blocks.next()
	if err != nil {
		*b = decoded{err: err}
		return
	}
	c.decode(payload, b)
}

// decode decodes a block into b, which keeps nothing of payload.
func (c *decoder) decode(payload []byte, b *decoded) {
	*b = decoded{nodes: b.nodes[:0]}
	d := proto.AliasReader(payload)
	var err error
	for d.Len() > 0 && err == nil {
		if err = c.record(&d, b); err == nil {
			err = d.Err()
		}
	}
	if b.block = c.blocks.number; err != nil {
		b.err = c.blocks.fail(err)
	}
}

// record decodes the next record.
func (c *decoder) record(d *proto.Reader, b *decoded) error {
	tag := d.Byte()
	if c.ended || c.begun == (tag == tagHeader) {
		return fmt.Errorf("a record with tag %d out of place", tag)
	}
	switch tag {
	case tagHeader:
		c.begun = true
		b.header = &header{d.Long(), d.Long()}
	case tagList:
		return c.list(d)
	case tagNode:
		b.nodes = append(b.nodes, record{})
		n := &b.nodes[len(b.nodes)-1]
		var err error
		if n.kids, err = readNode(d, c.lists, &n.State); err != nil {
			return err
		}
		c.acls.Retain(n.ACL)
	case tagTrailer:
		c.ended = true
		b.trailer = &trailer{d.Long(), uint64(d.Long()), uint64(d.Long())}
	default:
		return fmt.Errorf("a record with the unknown tag %d", tag)
	}
	return nil
}

// take puts the content of a block into the tree.
func (l *loader) take(b *decoded) error {
	if b.err != nil {
		return b.err
	}
	if h := b.header; h != nil {
		l.t.zxid, l.want = h.zxid, h.want
		l.room = min(max(l.want, 0), maxReserve)
		l.t.arena.Reserve(int(l.room))
	}
	for left := b.nodes; len(left) > 0; {
		nodes := left[:min(len(left), arena.PrefetchMax/2)]
		left = left[len(nodes):]
		l.prefetch(nodes)
		for i := range nodes {
			if err := l.node(&nodes[i]); err != nil {
				return failedBlock(b.block, err)
			}
		}
	}
	if b.trailer != nil {
		if err := l.check(b.trailer); err != nil {
			return failedBlock(b.block, err)
		}
	}
	return nil
}

// prefetch prefetches the slots of these nodes in the index, and of their parents.
func (l *loader) prefetch(nodes []record) {
	var paths [arena.PrefetchMax]string
	for i := range nodes {
		path := nodes[i].Path()
		paths[2*i], paths[2*i+1] = path, proto.Parent(path)
	}
	l.t.arena.Prefetch(paths[:2*len(nodes)])
}

// list reads an access control list.
func (c *decoder) list(d *proto.Reader) error {
	number, acl := d.Int(), d.ACLs()
	if d.Err() != nil {
		return d.Err()
	}
	if int(number) != len(c.lists) {
		return fmt.Errorf("access control list %d in place of %d", number, len(c.lists))
	}
	c.lists = append(c.lists, c.acls.Intern(acl))
	return nil
}

// maxReserve limits how many nodes we reserve memory for, in case the header is wrong.
const maxReserve = 1 << 20

// readNode reads the record of a node into s, without a reference to its list.
func readNode(d *proto.Reader, lists []*acl.Entry, s *arena.State) (kids int32, err error) {
	path, data := d.String(), d.Buffer()
	list := d.Int()
	s.Czxid, s.Mzxid, s.Pzxid = d.Long(), d.Long(), d.Long()
	s.Ctime, s.Mtime = d.Long(), d.Long()
	owner := d.Long()
	version := d.Int()
	s.Cversion, s.Aversion = d.Int(), d.Int()
	kind := arena.Kind(d.Byte())
	kids = d.Int()
	if d.Err() != nil {
		return 0, d.Err()
	}
	if err := proto.ValidatePath(path); err != nil {
		return 0, fmt.Errorf("node with an impossible path: %w", err)
	}
	switch {
	case list < 0 || int(list) >= len(lists):
		return 0, fmt.Errorf("node %q has the unknown access control list %d", path, list)
	case kids < 0:
		return 0, fmt.Errorf("node %q has %d children", path, kids)
	case kind > arena.TTL:
		return 0, fmt.Errorf("node %q is of the unknown kind %d", path, kind)
	case (kind == arena.Persistent) != (owner == 0):
		return 0, fmt.Errorf("node %q of kind %d has the owner %#x", path, kind, owner)
	}
	s.ACL = lists[list]
	s.Text = arena.NewText(kind, owner, path, data)
	s.Version = version
	return kids, nil
}

// node places a node.
func (l *loader) node(r *record) error {
	n, err := l.place(&r.State)
	if err != nil {
		return err
	}
	if r.kids > 0 {
		l.kids[n] = r.kids
		if l.room -= int64(r.kids); l.room >= 0 {
			n.ReserveChildren(int(r.kids))
		}
	}
	return nil
}

// place puts a node into the tree. s's reference to a list becomes the node's.
func (l *loader) place(s *arena.State) (*node, error) {
	path := s.Path()
	place := l.t.arena.Locate(path)
	n := l.t.arena.GetAt(place, path)
	switch {
	case n == nil:
		n = l.add(place, s)
	case n.State().ACL != nil:
		return nil, fmt.Errorf("node %q occurs twice", path)
	default:
		*n.State() = *s
		l.blanks--
	}
	if path != rootPath {
		l.parent(path).AddChild(n)
	}
	l.t.enlist(n)
	return n, nil
}

// add adds a node with that state to the index, which must not have its path yet.
func (l *loader) add(place arena.Place, s *arena.State) *node {
	n := l.t.arena.NewNode(s, l.t.epoch)
	if n.Path() == rootPath {
		l.t.root = n
	}
	l.t.arena.PutAt(place, n)
	return n
}

// parent returns the parent of path. It creates a blank if there is none.
func (l *loader) parent(path string) *node {
	path = proto.Parent(path)
	place := l.t.arena.Locate(path)
	if n := l.t.arena.GetAt(place, path); n != nil {
		return n
	}
	l.blanks++
	return l.add(place, &arena.State{Text: arena.NewText(arena.Persistent, 0, path, nil)})
}

// check finishes the tree and checks it against the trailer.
func (l *loader) check(end *trailer) error {
	if err := l.finish(); err != nil {
		return err
	}
	n, links := int64(l.t.arena.Len()), int64(0)
	if n != end.count || n != l.want {
		return fmt.Errorf("%d nodes where the header says %d and the trailer %d", n, l.want, end.count)
	}
	for n, count := range l.kids {
		if links += int64(count); n.NumChildren() != int(count) {
			return fmt.Errorf("node %q has %d children instead of %d", n.Path(), n.NumChildren(), count)
		}
	}
	switch {
	case links != n-1:
		return fmt.Errorf("the numbers of children add up to %d with %d nodes", links, n)
	case l.t.Digest() != end.digest:
		return fmt.Errorf("ZooKeeper's digest is %#x instead of %#x", l.t.Digest(), end.digest)
	case l.t.FullDigest() != end.full:
		return fmt.Errorf("the digest is %#x instead of %#x", l.t.FullDigest(), end.full)
	}
	return nil
}

// finish makes the checks that need all nodes.
func (l *loader) finish() error {
	for _, e := range l.lists {
		l.t.acls.Release(e) // the loader's reference, kept while nodes could still name it
	}
	for _, path := range [...]string{rootPath, procPath, quotaPath, ConfigPath} {
		if n := l.t.arena.Get(path); n == nil || n.State().ACL == nil {
			return fmt.Errorf("node %q is missing", path)
		}
	}
	if l.blanks == 0 && len(l.t.ephemerals) == 0 {
		return nil
	}
	for n := range l.t.arena.All {
		switch {
		case n.State().ACL == nil:
			return fmt.Errorf("node %q is missing, but not its children", n.Path())
		case n.Kind() == arena.Ephemeral && n.NumChildren() > 0:
			return fmt.Errorf("node %q is ephemeral and has children", n.Path())
		}
	}
	return nil
}

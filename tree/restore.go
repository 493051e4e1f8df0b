package tree

import (
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/proto"
)

// errReplaced reports that the content of a snapshot's tree was replaced.
var errReplaced = errors.New("tree: the tree was replaced by a restored one")

// Restore replaces the content of the tree with the snapshot that r holds. It reads no byte
// after the snapshot. Snapshots of the old content that aren't written yet fail. We drop
// the old content first, so that we never hold two trees in memory. After an error, the
// tree is a fresh one, and the caller must not continue with it.
func (t *Tree) Restore(r io.Reader) error { return t.replace(func() error { return t.load(r) }) }

// replace empties the tree and calls load to fill it again. After an error the tree
// is a fresh one.
func (t *Tree) replace(load func() error) error {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	t.reset()
	t.forget()
	err := load()
	if err != nil {
		t.reset()
		t.plantAll()
	}
	return err
}

// forget drops what keeps old nodes alive.
func (t *Tree) forget() {
	t.result, t.undo, t.aclBuf, t.recalled, t.measured = Result{}, journal{}, nil, nil, measured{}
}

// loader builds a tree from records. Nodes come in any order: if we haven't read a parent's
// record yet, the parent is in the tree as a blank.
type loader struct {
	t      *Tree
	blocks blockReader
	lists  []*aclEntry
	blanks int             // nodes without a list: their record hasn't come yet
	kids   map[*Node]int32 // number of children in a node's record, unless 0
	want   int64           // nodes that the header announces
	room   int64           // children for which memory may still be reserved
	begun  bool
	ended  bool
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
	for !l.ended {
		payload, err := l.blocks.next()
		if err != nil {
			return err
		}
		if err := l.block(payload); err != nil {
			return l.blocks.fail(err)
		}
	}
	return nil
}

func newLoader(t *Tree, r io.Reader) loader {
	return loader{t: t, blocks: blockReader{r: r}, kids: make(map[*Node]int32)}
}

func wrongMagic(found []byte) error {
	return fmt.Errorf("tree: not a snapshot or one of another version: it starts with %q instead of %q", found, magic)
}

// block reads the records of one block.
func (l *loader) block(payload []byte) error {
	d := proto.AliasReader(payload)
	for d.Len() > 0 {
		tag := d.Byte()
		if l.ended || l.begun == (tag == tagHeader) {
			return fmt.Errorf("a record with tag %d out of place", tag)
		}
		var err error
		switch tag {
		case tagHeader:
			l.begun = true
			l.t.zxid, l.want = d.Long(), d.Long()
			l.room = min(max(l.want, 0), maxReserve)
			l.t.index.reserve(int(l.room))
		case tagList:
			err = l.list(&d)
		case tagNode:
			err = l.node(&d)
		case tagTrailer:
			l.ended = true
			err = l.trailer(&d)
		default:
			return fmt.Errorf("a record with the unknown tag %d", tag)
		}
		if err == nil {
			err = d.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list reads an access control list.
func (l *loader) list(d *proto.Reader) error {
	number, acl := d.Int(), d.ACLs()
	if d.Err() != nil {
		return d.Err()
	}
	if int(number) != len(l.lists) {
		return fmt.Errorf("access control list %d where %d should stand", number, len(l.lists))
	}
	l.lists = append(l.lists, l.t.acls.intern(acl))
	return nil
}

// maxReserve limits how many nodes we reserve memory for, in case the header is wrong.
const maxReserve = 1 << 20

// readNode reads the record of a node into s and adds a reference to its list.
func readNode(d *proto.Reader, lists []*aclEntry, s *state) (path string, kids int32, err error) {
	path, data := d.String(), d.Buffer()
	list := d.Int()
	s.czxid, s.mzxid, s.pzxid = d.Long(), d.Long(), d.Long()
	s.ctime, s.mtime = d.Long(), d.Long()
	owner := d.Long()
	version := d.Int()
	s.cversion, s.aversion = d.Int(), d.Int()
	kind := kind(d.Byte())
	kids = d.Int()
	switch {
	case d.Err() != nil:
		return path, 0, d.Err()
	case list < 0 || int(list) >= len(lists):
		return path, 0, fmt.Errorf("node %q has the unknown access control list %d", path, list)
	case kids < 0:
		return path, 0, fmt.Errorf("node %q has %d children", path, kids)
	case kind > ttl:
		return path, 0, fmt.Errorf("node %q is of the unknown kind %d", path, kind)
	case (kind == persistent) != (owner == 0):
		return path, 0, fmt.Errorf("node %q of kind %d has the owner %#x", path, kind, owner)
	}
	s.acl = lists[list]
	s.acl.refs++
	s.text = newText(kind, owner, path, data)
	s.version = version
	return path, kids, nil
}

// node reads a node and links it to its parent.
func (l *loader) node(d *proto.Reader) error {
	var s state
	_, kids, err := readNode(d, l.lists, &s)
	if err != nil {
		return err
	}
	n, err := l.place(&s)
	if err != nil {
		return err
	}
	if kids > 0 {
		l.kids[n] = kids
		if l.room -= int64(kids); l.room >= 0 {
			n.reserveChildren(int(kids))
		}
	}
	return nil
}

// place puts a node into the tree. The node takes over s's reference to a list.
func (l *loader) place(s *state) (*Node, error) {
	path := s.path()
	if err := proto.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("node with an impossible path: %w", err)
	}
	shard, hash := l.t.index.locate(path)
	n := l.t.index.getAt(shard, hash, path)
	switch {
	case n == nil:
		n = l.add(shard, hash, s)
	case n.acl != nil:
		return nil, fmt.Errorf("node %q is there twice", path)
	default:
		n.state = *s
		l.blanks--
	}
	if path != rootPath {
		l.parent(path).addChild(n)
	}
	l.t.enlist(n)
	return n, nil
}

// add adds a node with that state to the index, which must not have its path yet.
func (l *loader) add(shard int, hash uint32, s *state) *Node {
	n := l.t.newNode(s)
	if n.path() == rootPath {
		l.t.root = n
	}
	l.t.index.putAt(shard, hash, n)
	return n
}

// parent returns the parent of path. It creates a blank if there is none.
func (l *loader) parent(path string) *Node {
	path = proto.Parent(path)
	shard, hash := l.t.index.locate(path)
	if n := l.t.index.getAt(shard, hash, path); n != nil {
		return n
	}
	l.blanks++
	return l.add(shard, hash, &state{text: newText(persistent, 0, path, nil)})
}

// trailer finishes the tree and checks it against the trailer.
func (l *loader) trailer(d *proto.Reader) error {
	count, digest, full := d.Long(), uint64(d.Long()), uint64(d.Long())
	if d.Err() != nil {
		return d.Err()
	}
	if err := l.finish(); err != nil {
		return err
	}
	n, links := int64(l.t.index.n), int64(0)
	if n != count || n != l.want {
		return fmt.Errorf("%d nodes where the header says %d and the trailer %d", n, l.want, count)
	}
	for n, count := range l.kids {
		if links += int64(count); n.NumChildren() != int(count) {
			return fmt.Errorf("node %q has %d children instead of %d", n.path(), n.NumChildren(), count)
		}
	}
	switch {
	case links != n-1:
		return fmt.Errorf("the numbers of children add up to %d with %d nodes", links, n)
	case l.t.Digest() != digest:
		return fmt.Errorf("ZooKeeper's digest is %#x instead of %#x", l.t.Digest(), digest)
	case l.t.FullDigest() != full:
		return fmt.Errorf("the digest is %#x instead of %#x", l.t.FullDigest(), full)
	}
	return nil
}

// finish makes the checks that need all nodes.
func (l *loader) finish() error {
	for _, e := range l.lists {
		l.t.acls.release(e) // the loader's reference, held while nodes could still name it
	}
	for _, path := range [...]string{rootPath, procPath, quotaPath, ConfigPath} {
		if n := l.t.index.get(path); n == nil || n.acl == nil {
			return fmt.Errorf("node %q is missing", path)
		}
	}
	if l.blanks == 0 && len(l.t.ephemerals) == 0 {
		return nil
	}
	for n := range l.t.nodes.all {
		switch {
		case n.acl == nil:
			return fmt.Errorf("node %q is missing, but not its children", n.path())
		case n.kind() == ephemeral && n.NumChildren() > 0:
			return fmt.Errorf("node %q is ephemeral and has children", n.path())
		}
	}
	return nil
}

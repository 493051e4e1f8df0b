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

// loader builds a tree from records. Nodes come in any order: if we haven't read a parent's
// record yet, the parent is in the tree as a blank.
type loader struct {
	t      *Tree
	blocks blockReader
	lists  []*acl.Entry
	blanks int             // nodes without a list: their record hasn't come yet
	kids   map[*node]int32 // number of children in a node's record, unless 0
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
	return loader{t: t, blocks: blockReader{r: r}, kids: make(map[*node]int32)}
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
			l.t.arena.Reserve(int(l.room))
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
		return fmt.Errorf("access control list %d in place of %d", number, len(l.lists))
	}
	l.lists = append(l.lists, l.t.acls.Intern(acl))
	return nil
}

// maxReserve limits how many nodes we reserve memory for, in case the header is wrong.
const maxReserve = 1 << 20

// readNode reads the record of a node into s, without a reference to its list.
func readNode(d *proto.Reader, lists []*acl.Entry, s *arena.State) (path string, kids int32, err error) {
	path, data := d.String(), d.Buffer()
	list := d.Int()
	s.Czxid, s.Mzxid, s.Pzxid = d.Long(), d.Long(), d.Long()
	s.Ctime, s.Mtime = d.Long(), d.Long()
	owner := d.Long()
	version := d.Int()
	s.Cversion, s.Aversion = d.Int(), d.Int()
	kind := arena.Kind(d.Byte())
	kids = d.Int()
	switch {
	case d.Err() != nil:
		return path, 0, d.Err()
	case list < 0 || int(list) >= len(lists):
		return path, 0, fmt.Errorf("node %q has the unknown access control list %d", path, list)
	case kids < 0:
		return path, 0, fmt.Errorf("node %q has %d children", path, kids)
	case kind > arena.TTL:
		return path, 0, fmt.Errorf("node %q is of the unknown kind %d", path, kind)
	case (kind == arena.Persistent) != (owner == 0):
		return path, 0, fmt.Errorf("node %q of kind %d has the owner %#x", path, kind, owner)
	}
	s.ACL = lists[list]
	s.Text = arena.NewText(kind, owner, path, data)
	s.Version = version
	return path, kids, nil
}

// node reads a node and links it to its parent.
func (l *loader) node(d *proto.Reader) error {
	var s arena.State
	_, kids, err := readNode(d, l.lists, &s)
	if err != nil {
		return err
	}
	l.t.acls.Retain(s.ACL)
	n, err := l.place(&s)
	if err != nil {
		return err
	}
	if kids > 0 {
		l.kids[n] = kids
		if l.room -= int64(kids); l.room >= 0 {
			n.ReserveChildren(int(kids))
		}
	}
	return nil
}

// place puts a node into the tree. s's reference to a list becomes the node's.
func (l *loader) place(s *arena.State) (*node, error) {
	path := s.Path()
	if err := proto.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("node with an impossible path: %w", err)
	}
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

// trailer finishes the tree and checks it against the trailer.
func (l *loader) trailer(d *proto.Reader) error {
	count, digest, full := d.Long(), uint64(d.Long()), uint64(d.Long())
	if d.Err() != nil {
		return d.Err()
	}
	if err := l.finish(); err != nil {
		return err
	}
	n, links := int64(l.t.arena.Len()), int64(0)
	if n != count || n != l.want {
		return fmt.Errorf("%d nodes where the header says %d and the trailer %d", n, l.want, count)
	}
	for n, count := range l.kids {
		if links += int64(count); n.NumChildren() != int(count) {
			return fmt.Errorf("node %q has %d children instead of %d", n.Path(), n.NumChildren(), count)
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

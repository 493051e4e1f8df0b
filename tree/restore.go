package tree

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// errReplaced says that a snapshot's tree has been replaced by another one.
var errReplaced = errors.New("tree: the tree was replaced by a restored one")

// Restore replaces the content of the tree by the snapshot that r holds and
// reads no byte behind it. Snapshots of the old content that are not written
// yet fail. The old content is given up first, so that never two trees are in
// memory. After an error, which names what is wrong, the tree is a fresh one;
// the caller must not go on with it.
func (t *Tree) Restore(r io.Reader) error {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	t.reset()
	t.result = Result{}
	err := t.load(r)
	if err != nil {
		fresh := New()
		t.index, t.root, t.acls, t.ephemerals = fresh.index, fresh.root, fresh.acls, fresh.ephemerals
		t.containers, t.quotas, t.totals, t.zxid = fresh.containers, fresh.quotas, fresh.totals, 0
	}
	return err
}

// loader builds a tree from records.
type loader struct {
	t      *Tree
	blocks blockReader
	lists  []*aclEntry
	slab   []Node
	kids   map[*Node]int32 // children that a node says it has, where there are any
	want   int64
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
		return fmt.Errorf("tree: not a snapshot or one of another version: it starts with %q instead of %q", m[:], magic)
	}
	l := loader{t: t, blocks: blockReader{r: r}, kids: make(map[*Node]int32)}
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

// slabSize is the number of nodes that are allocated at once. It is small: one
// that lives keeps all alive.
const slabSize = 16

// node reads a node into the index. It is linked to its parent at the end: they
// come in any order.
func (l *loader) node(d *proto.Reader) error {
	if len(l.slab) == 0 {
		l.slab = make([]Node, slabSize)
	}
	n := &l.slab[0]
	n.path = d.String()
	data := d.Buffer()
	list := d.Int()
	for _, v := range [...]*int64{&n.czxid, &n.mzxid, &n.pzxid, &n.ctime, &n.mtime, &n.owner} {
		*v = d.Long()
	}
	for _, v := range [...]*int32{&n.version, &n.cversion, &n.aversion} {
		*v = d.Int()
	}
	n.kind = kind(d.Byte())
	kids := d.Int()
	if d.Err() != nil {
		return d.Err()
	}
	switch {
	case list < 0 || int(list) >= len(l.lists):
		return fmt.Errorf("node %q has the unknown access control list %d", n.path, list)
	case n.kind > ttl:
		return fmt.Errorf("node %q is of the unknown kind %d", n.path, n.kind)
	case (n.kind == persistent) != (n.owner == 0):
		return fmt.Errorf("node %q of kind %d has the owner %#x", n.path, n.kind, n.owner)
	case kids < 0:
		return fmt.Errorf("node %q has %d children", n.path, kids)
	}
	l.slab = l.slab[1:]
	n.path = strings.Clone(n.path)
	n.epoch = l.t.epoch
	n.acl = l.lists[list]
	n.acl.refs++
	n.setBytes(ownCopy(data))
	if kids > 0 {
		l.kids[n] = kids
	}
	return l.t.admit(n)
}

// admit adds n to the index while the tree is being built.
func (t *Tree) admit(n *Node) error {
	if err := proto.ValidatePath(n.path); err != nil {
		return fmt.Errorf("node with an impossible path: %w", err)
	}
	if t.index.get(n.path) != nil {
		return fmt.Errorf("node %q is there twice", n.path)
	}
	t.seal(n)
	t.index.put(n)
	return nil
}

// trailer finishes the tree and compares it with what the trailer says.
func (l *loader) trailer(d *proto.Reader) error {
	count, digest, full := d.Long(), uint64(d.Long()), uint64(d.Long())
	if d.Err() != nil {
		return d.Err()
	}
	for _, e := range l.lists {
		l.t.acls.release(e) // the reference that kept it while nodes could still name it
	}
	if n := int64(l.t.index.n); n != count || n != l.want {
		return fmt.Errorf("%d nodes where the header says %d and the trailer %d", n, l.want, count)
	}
	if err := l.t.link(l.kids); err != nil {
		return err
	}
	if l.t.Digest() != digest {
		return fmt.Errorf("ZooKeeper's digest is %#x instead of %#x", l.t.Digest(), digest)
	}
	if l.t.FullDigest() != full {
		return fmt.Errorf("the digest is %#x instead of %#x", l.t.FullDigest(), full)
	}
	return nil
}

// link ties the nodes of the index together. kids holds how many children every
// node has that has some.
func (t *Tree) link(kids map[*Node]int32) error {
	for _, path := range [...]string{rootPath, procPath, quotaPath, ConfigPath} {
		if t.index.get(path) == nil {
			return fmt.Errorf("node %q is missing", path)
		}
	}
	t.root = t.index.get(rootPath)
	sum := int64(0)
	for _, count := range kids {
		sum += int64(count)
	}
	if sum != int64(t.index.n-1) {
		return fmt.Errorf("the numbers of children add up to %d with %d nodes", sum, t.index.n)
	}
	for n, count := range kids {
		list := make([]*Node, 0, count)
		n.kids = &list
	}
	for n := range t.index.all {
		if n != t.root {
			parent := t.Get(proto.Parent(n.path))
			if parent == nil {
				return fmt.Errorf("node %q has no parent", n.path)
			}
			if parent.kind == ephemeral {
				return fmt.Errorf("node %q is a child of an ephemeral node", n.path)
			}
			parent.addChild(n)
		}
		t.enlist(n)
	}
	for n, count := range kids {
		if n.NumChildren() != int(count) {
			return fmt.Errorf("node %q has %d children instead of %d", n.path, n.NumChildren(), count)
		}
	}
	return nil
}

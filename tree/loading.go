package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Loading makes a tree of what Snapshot.WriteTo has written, as it comes: in
// pieces of any length. It is no business of any tree that is in use.
type Loading struct {
	l    loader
	buf  []byte // what has come of a block that is not whole yet
	read bool   // the magic string has come
	err  error  // why nothing more is taken
}

// NewLoading returns a Loading that has got nothing yet.
func NewLoading() *Loading {
	t := new(Tree)
	t.reset()
	return &Loading{l: newLoader(t, nil)}
}

// Write takes the next bytes. It fails, and for good, as soon as something is
// wrong with them.
func (g *Loading) Write(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	g.buf = append(g.buf, p...)
	left := g.buf
	for g.err == nil {
		n := g.step(left)
		if n == 0 {
			break
		}
		left = left[n:]
	}
	if g.err != nil {
		g.buf = nil
		return 0, g.err
	}
	if len(left) < len(g.buf) {
		g.buf = append(g.buf[:0], left...)
	}
	return len(p), nil
}

// step takes the magic string or one block off the start of b and returns its
// length, 0 when it is not whole.
func (g *Loading) step(b []byte) int {
	if !g.read {
		if len(b) < len(magic) {
			return 0
		}
		g.read = true
		if string(b[:len(magic)]) != magic {
			g.err = wrongMagic(b[:len(magic)])
		}
		return len(magic)
	}
	if g.l.ended {
		if len(b) > 0 {
			g.err = errors.New("tree: bytes behind the end of a snapshot")
		}
		return 0
	}
	if len(b) < blockHeader {
		return 0
	}
	size := int(binary.BigEndian.Uint32(b))
	if len(b)-blockHeader < size {
		return 0
	}
	payload := b[blockHeader : blockHeader+size]
	r := &g.l.blocks
	r.number++
	if g.err = r.verify(payload, binary.BigEndian.Uint32(b[4:])); g.err == nil {
		if err := g.l.block(payload); err != nil {
			g.err = r.fail(err)
		}
	}
	return blockHeader + size
}

// Tree returns the tree, if all of it has come. It can be called once.
func (g *Loading) Tree() (*Tree, error) {
	switch {
	case g.err != nil:
		return nil, g.err
	case !g.l.ended:
		return nil, fmt.Errorf("tree: a snapshot ends early, behind block %d", g.l.blocks.number)
	}
	g.err = errors.New("tree: the tree was taken already")
	return g.l.t, nil
}

// Adopt replaces the content of the tree by that of o, of which nothing may be
// used afterwards. Only the znode of the membership stays as it is. Snapshots of
// the old content that are not written yet fail. The caller holds the lock for
// writing.
func (t *Tree) Adopt(o *Tree) {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	o.keep(t.Get(ConfigPath))
	t.forget()
	t.nodes, t.index, t.root, t.acls, t.ephemerals = o.nodes, o.index, o.root, o.acls, o.ephemerals
	t.containers, t.quotas, t.totals, t.zxid = o.containers, o.quotas, o.totals, o.zxid
	t.epoch = max(t.epoch, o.epoch)
	t.noteLength(o.longest.Load())
}

// keep gives the znode of the membership the state that own has.
func (t *Tree) keep(own *Node) {
	n := t.Get(ConfigPath)
	t.discharge(n)
	acl := t.acls.intern(own.acl.list)
	t.acls.release(n.acl)
	n.state = own.state
	n.acl = acl
	t.enlist(n)
}

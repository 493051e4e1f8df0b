package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Loading builds a tree from the output of Snapshot.WriteTo, which arrives in
// pieces of any length. It doesn't affect a tree that is in use.
type Loading struct {
	l     loader
	buf   []byte  // the part of an incomplete block that has arrived
	block decoded // the last one
	read  bool    // the magic string has arrived
	err   error   // error of Write and Tree
}

// NewLoading returns a Loading that has received nothing yet.
func NewLoading() *Loading {
	t := new(Tree)
	t.reset()
	return &Loading{l: newLoader(t, nil)}
}

// Write accepts the next bytes. Once it has found an error in the bytes, it and all later
// calls fail.
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

// step consumes the magic string or one block at the start of b. It returns the
// length consumed, 0 if the block is incomplete.
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
			g.err = errors.New("tree: bytes after the end of a snapshot")
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
		g.l.decode(payload, &g.block)
		g.err = g.l.take(&g.block)
	}
	return blockHeader + size
}

// Tree returns the tree if it is complete. It can be called once.
func (g *Loading) Tree() (*Tree, error) {
	switch {
	case g.err != nil:
		return nil, g.err
	case !g.l.ended:
		return nil, fmt.Errorf("tree: a snapshot ends early, after block %d", g.l.blocks.number)
	}
	g.err = errors.New("tree: Tree was called already")
	return g.l.t, nil
}

// Adopt replaces the content of the tree with the content of o. The caller must not use o
// afterwards. With keepConfig, the membership znode keeps its state. Snapshots of the old
// content that aren't written yet fail. The caller holds the lock for writing.
func (t *Tree) Adopt(o *Tree, keepConfig bool) {
	if keepConfig {
		o.keep(t.get(ConfigPath))
	}
	t.forget()
	t.arena, t.root, t.acls, t.ephemerals = o.arena, o.root, o.acls, o.ephemerals
	t.containers, t.quotas, t.totals, t.zxid = o.containers, o.quotas, o.totals, o.zxid
	t.epoch = max(t.epoch, o.epoch)
	t.noteLength(o.longest.Load())
}

// keep gives the membership znode the state of own.
func (t *store) keep(own *node) {
	n := t.get(ConfigPath)
	t.discharge(n)
	list := t.acls.Intern(own.State().ACL.List())
	t.acls.Release(n.State().ACL)
	*n.State() = *own.State()
	n.State().ACL = list
	t.enlist(n)
}

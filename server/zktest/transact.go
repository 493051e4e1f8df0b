package zktest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// image is a znode as a Snapshot of a cluster has it.
type image struct {
	path  string
	data  []byte
	acl   []proto.ACL
	stat  proto.Stat
	every int64 // milliseconds to live; 0: for ever
	empty bool  // a container
}

// What the owner of a znode without a session says, as on the wire.
const (
	containerOwner = -1 << 63
	ttlOwner       = -1 << 56
)

// imageOf returns the image of the znode n of a tree that holds no ephemeral
// one.
func imageOf(n *tree.Node) image {
	m := image{path: n.Path(), data: n.Data(), acl: n.ACL()}
	n.Stat(&m.stat)
	switch owner := m.stat.EphemeralOwner; {
	case owner == containerOwner:
		m.empty = true
	case owner&ttlOwner == ttlOwner:
		m.every = owner & proto.MaxTTL
	}
	return m
}

// imagesOf returns the images of all znodes that a client can write, parents
// first.
func imagesOf(t *tree.Tree) []image {
	var list []image
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		if n.Path() == tree.ConfigPath {
			return // whose content is not a client's
		}
		list = append(list, imageOf(n))
		for _, name := range slices.Sorted(t.Children(n)) {
			walk(t.Get(below(n.Path(), name)))
		}
	}
	walk(t.Get("/"))
	return list
}

func below(path, name string) string { return strings.TrimSuffix(path, "/") + "/" + name }

// transact has the tree hold what the images show, by transactions.
func (s *Server) transact(to []image) {
	s.t.Helper()
	s.write("Reset", func(t *tree.Tree) []proto.MultiOp { return goingBack(t, to) })
}

// maxVersions is how many times a znode is written to bring back its version.
const maxVersions = 1000

// goingBack returns what makes t hold what the images show. What differs is
// deleted with all below it and made anew: so it gets its version back.
func goingBack(t *tree.Tree, to []image) []proto.MultiOp {
	kept := map[string]bool{"/zookeeper/config": true}
	anew := make(map[string]bool)
	var ops, made []proto.MultiOp
	for i := range to {
		m := &to[i]
		n := t.Get(m.path)
		kept[m.path] = true
		if m.permanent() {
			made = append(made, m.adjust(n)...)
			continue
		}
		if anew[proto.Parent(m.path)] || n == nil || !m.same(n) {
			anew[m.path] = true
			made = append(made, m.create()...)
		}
	}
	for path := range anew {
		kept[path] = false
	}
	ops = leaving(ops, t, "/", kept)
	return append(ops, made...)
}

// permanent reports whether m is one of the znodes that every tree has.
func (m *image) permanent() bool {
	return m.path == "/" || m.path == "/zookeeper" || m.path == "/zookeeper/quota"
}

// same reports whether n is still what m shows.
func (m *image) same(n *tree.Node) bool {
	is := imageOf(n)
	return bytes.Equal(is.data, m.data) && (is.data == nil) == (m.data == nil) && slices.Equal(is.acl, m.acl) &&
		is.stat.Version == m.stat.Version && is.stat.Cversion == m.stat.Cversion
}

// adjust brings one of the permanent znodes back.
func (m *image) adjust(n *tree.Node) []proto.MultiOp {
	if n == nil || bytes.Equal(n.Data(), m.data) {
		return nil
	}
	return []proto.MultiOp{{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: m.path, Data: m.data, Version: -1}}}
}

// create returns what makes the znode anew.
func (m *image) create() []proto.MultiOp {
	req := proto.CreateRequest{Path: m.path, Data: m.data, ACL: m.acl}
	op := proto.MultiOp{Op: proto.OpCreate, Req: &req}
	switch {
	case m.empty:
		op.Op, req.Flags = proto.OpCreateContainer, int32(proto.ModeContainer)
	case m.every != 0:
		op = proto.MultiOp{Op: proto.OpCreateTTL, Req: &proto.CreateTTLRequest{Path: m.path, Data: m.data, ACL: m.acl,
			Flags: int32(proto.ModePersistentTTL), TTL: m.every}}
	}
	ops := []proto.MultiOp{op}
	for range min(m.stat.Version, maxVersions) {
		ops = append(ops, proto.MultiOp{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: m.path, Data: m.data, Version: -1}})
	}
	return ops
}

// leaving appends what deletes all that is not to be kept as it is, the deepest
// first.
func leaving(ops []proto.MultiOp, t *tree.Tree, path string, kept map[string]bool) []proto.MultiOp {
	if !kept[path] {
		return deleting(ops, t, path)
	}
	for _, name := range slices.Sorted(t.Children(t.Get(path))) {
		ops = leaving(ops, t, below(path, name), kept)
	}
	return ops
}

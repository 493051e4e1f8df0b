package zktest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// image is the state of a znode in the Snapshot of a cluster.
type image struct {
	path  string
	data  []byte
	acl   []proto.ACL
	stat  proto.Stat
	every int64 // TTL in milliseconds; 0: none
	empty bool  // a container
}

// The ephemeralOwner of znodes without a session, as on the wire.
const (
	containerOwner = -1 << 63
	ttlOwner       = -1 << 56
)

// imageOf returns the image of the znode n, which must not be ephemeral.
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

// imagesOf returns the images of all znodes that a client can write, parents first.
func imagesOf(t *tree.Tree) []image {
	var list []image
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		if n.Path() == tree.ConfigPath {
			return // a client didn't write its contents
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

// transact makes the tree match the images, using transactions.
func (s *Server) transact(to []image) {
	s.t.Helper()
	s.write("Reset", func(t *tree.Tree) []proto.MultiOp { return goingBack(t, to) })
}

// maxVersions limits the number of writes that restore a znode's version.
const maxVersions = 1000

// goingBack returns the operations that make t match the images. We delete and recreate a
// znode that differs, with its whole subtree, because that also restores the version.
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

// same reports whether n still matches m.
func (m *image) same(n *tree.Node) bool {
	is := imageOf(n)
	return bytes.Equal(is.data, m.data) && (is.data == nil) == (m.data == nil) && slices.Equal(is.acl, m.acl) &&
		is.stat.Version == m.stat.Version && is.stat.Cversion == m.stat.Cversion
}

// adjust restores one of the permanent znodes.
func (m *image) adjust(n *tree.Node) []proto.MultiOp {
	if n == nil || bytes.Equal(n.Data(), m.data) {
		return nil
	}
	return []proto.MultiOp{{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: m.path, Data: m.data, Version: -1}}}
}

// create returns the operations that recreate the znode.
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

// leaving appends the deletions of all znodes that aren't kept, deepest first.
func leaving(ops []proto.MultiOp, t *tree.Tree, path string, kept map[string]bool) []proto.MultiOp {
	if !kept[path] {
		return deleting(ops, t, path)
	}
	for _, name := range slices.Sorted(t.Children(t.Get(path))) {
		ops = leaving(ops, t, below(path, name), kept)
	}
	return ops
}

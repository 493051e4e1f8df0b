package zktest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tree"
)

// Set writes data to the znode at path. If the znode doesn't exist, Set creates it
// and its missing parents with an open ACL. It needs no client and no permission, and
// triggers watches like any write. zxids rise by three.
func (s *Server) Set(path, data string) {
	s.t.Helper()
	s.Seed(map[string]string{path: data})
}

// Seed is Set for all paths of a map, in one transaction.
func (s *Server) Seed(nodes map[string]string) {
	s.t.Helper()
	if s.outside != nil {
		for _, path := range slices.Sorted(maps.Keys(nodes)) {
			if err := s.outside.set(path, nodes[path]); err != nil {
				s.fatalf("Seed: %s: %v", path, err)
			}
		}
		return
	}
	s.write("Seed", func(t *tree.Tree) []proto.MultiOp { return seeding(t, nodes) })
}

// Delete deletes the znode at path and its subtree, if it exists. For "/" we keep the root
// and /zookeeper.
func (s *Server) Delete(path string) {
	s.t.Helper()
	if s.outside != nil {
		if err := s.outside.remove(path); err != nil {
			s.fatalf("Delete: %v", err)
		}
		return
	}
	s.write("Delete", func(t *tree.Tree) []proto.MultiOp { return deleting(nil, t, path) })
}

// attempts limits the retries of a write when concurrent clients invalidate its plan.
const attempts = 100

// write executes the operations that plan derives from the current tree.
func (s *Server) write(what string, plan func(t *tree.Tree) []proto.MultiOp) {
	s.t.Helper()
	code, err := proto.ErrSystemError, error(nil)
	for range attempts {
		var srv *server.Server
		if srv, err = s.writer(); err != nil {
			break
		}
		var ops []proto.MultiOp
		s.read(func(t *tree.Tree) { ops = plan(t) })
		if len(ops) == 0 {
			return
		}
		code, err = execute(srv, ops)
		switch {
		case errors.Is(err, errUncertain):
		case err != nil:
			s.fatalf("%s: %v", what, err)
		case code == proto.Ok:
			s.settle()
			return
		case code != proto.ErrNoNode && code != proto.ErrNodeExists && code != proto.ErrNotEmpty:
			s.fatalf("%s: %v", what, code)
		}
	}
	s.fatalf("%s: %v", what, errors.Join(err, code.Err()))
}

// writer returns the server that accepts writes: in a cluster, the leader.
func (s *Server) writer() (*server.Server, error) {
	if s.cluster != nil {
		s = s.cluster.Leader()
	}
	if !s.isUp() {
		return nil, errors.New("the server does not run")
	}
	return s.Server(), nil
}

// settle waits until the write is visible on all servers.
func (s *Server) settle() {
	s.t.Helper()
	if s.cluster != nil {
		s.cluster.settle()
	}
}

// seeding returns the operations that make the tree contain nodes.
func seeding(t *tree.Tree, nodes map[string]string) []proto.MultiOp {
	var ops []proto.MultiOp
	made := map[string]bool{"/": true}
	var grow func(path, data string)
	grow = func(path, data string) {
		if made[path] {
			return
		}
		made[path] = true
		if parent := proto.Parent(path); parent != "" && t.Get(parent) == nil {
			grow(parent, nodes[parent])
		}
		ops = append(ops, proto.MultiOp{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL()}})
	}
	for _, path := range slices.Sorted(maps.Keys(nodes)) {
		if t.Get(path) != nil {
			ops = append(ops, proto.MultiOp{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: path, Data: []byte(nodes[path]), Version: -1}})
		} else {
			grow(path, nodes[path])
		}
	}
	return ops
}

// deleting appends the operations that delete path and its subtree, deepest first.
func deleting(ops []proto.MultiOp, t *tree.Tree, path string) []proto.MultiOp {
	n := t.Get(path)
	if n == nil || path == "/zookeeper" {
		return ops
	}
	for _, name := range slices.Sorted(t.Children(n)) {
		ops = deleting(ops, t, strings.TrimSuffix(path, "/")+"/"+name)
	}
	if path == "/" {
		return ops
	}
	return append(ops, proto.MultiOp{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: path, Version: -1}})
}

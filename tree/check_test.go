package tree

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Check should find every fault that we inject here.
func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Tree, *node){
		"has the root's path":        func(t *Tree, n *node) { t.root = n },
		"changed in epoch":           func(t *Tree, n *node) { n.SetEpoch(t.epoch + 1) },
		"of kind 2 without an owner": func(_ *Tree, n *node) { n.State().Text = arena.NewText(arena.Container, 0, n.Path(), n.Data()) },
		"among the ephemerals":       func(t *Tree, _ *node) { t.ephemerals[7] = nil },
		"among the containers":       func(t *Tree, _ *node) { t.containers = nil },
		"does not limit":             func(t *Tree, _ *node) { t.quotas = nil },
		"is ephemeral and has children": func(t *Tree, _ *node) {
			n := t.get("/a")
			n.State().Text = arena.NewText(arena.Ephemeral, 7, "/a", n.Data())
		},
		"ephemerals,":              func(t *Tree, _ *node) { t.totals.ephemerals++ },
		"containers, 3 indexed":    func(t *Tree, _ *node) { t.containers[new(node)] = struct{}{} },
		"limits, 2 indexed":        func(t *Tree, n *node) { t.quotas["/nope"] = n },
		"not removed all it added": func(t *Tree, _ *node) { t.undo.active = true },
		"totals are":               func(t *Tree, _ *node) { t.totals.digest++ },
		"references instead of":    func(t *Tree, n *node) { t.acls.Retain(n.State().ACL) },
		"lists in use":             func(t *Tree, n *node) { t.acls.Intern(nil) },
	} {
		tree := varied(t)
		spoil(tree, tree.get("/a/b/c"))
		if err := tree.Check(); err == nil || !strings.Contains(err.Error(), want) && want != "lists in use" {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestDumpFails(t *testing.T) {
	t.Parallel()
	w := failAfter(0)
	if err := New().Dump(&w); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// A failed multi restores even the order of the children.
func TestRollbackRestoresOrder(t *testing.T) {
	t.Parallel()
	g := newGenerator(9)
	for range 200 {
		tree := New()
		plant(t, tree, 0, "/1", "/2", "/3", "/4", "/5", "/6")
		before := string(tree.AppendChildren(nil, tree.Get("/")))
		var m proto.MultiRequest
		for range 8 {
			path := pick(g, "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8")
			if tree.Get(path) != nil {
				m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: path, Version: -1}})
				do(t, tree, m.Ops[len(m.Ops)-1].Op, m.Ops[len(m.Ops)-1].Req)
			} else {
				m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: path, ACL: proto.OpenACL()}})
				do(t, tree, m.Ops[len(m.Ops)-1].Op, m.Ops[len(m.Ops)-1].Req)
			}
		}
		m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/nope"}})
		tree = New()
		plant(t, tree, 0, "/1", "/2", "/3", "/4", "/5", "/6")
		r := do(t, tree, proto.OpMulti, &m)
		if r.Multi[7].Code != proto.Ok || r.Multi[8].Code != proto.ErrNoNode {
			t.Fatalf("%+v", r.Multi)
		}
		if after := string(tree.AppendChildren(nil, tree.Get("/"))); after != before {
			t.Fatalf("%q became %q", before, after)
		}
	}
}

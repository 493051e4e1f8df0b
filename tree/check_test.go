package tree

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// Check should find every fault that we inject here.
func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Tree, *Node){
		"not found under its path":      func(_ *Tree, n *Node) { n.text = newText(persistent, 0, "/elsewhere", n.bytes()) },
		"the root or not":               func(_ *Tree, n *Node) { n.parent = none },
		"where its number":              func(t *Tree, n *Node) { n.number++ },
		"and 0 vacant slots":            func(t *Tree, _ *Node) { orphan(t).state = state{} },
		"neither a node nor":            func(t *Tree, _ *Node) { orphan(t).text = text{} },
		"changed in epoch":              func(t *Tree, n *Node) { n.epoch = t.epoch + 1 },
		"caches the checksum":           func(_ *Tree, n *Node) { n.rewrite(n.bytes(), n.version); *n.first++ },
		"of kind 2 without an owner":    func(_ *Tree, n *Node) { n.text = newText(container, 0, n.path(), n.bytes()) },
		"not in the tree":               func(t *Tree, n *Node) { n.parent = orphan(t).number },
		"has the parent":                func(t *Tree, n *Node) { n.parent = t.root.number },
		"not at its position":           func(_ *Tree, n *Node) { n.pos++ },
		"among the ephemerals":          func(t *Tree, _ *Node) { t.ephemerals[7] = nil },
		"among the containers":          func(t *Tree, _ *Node) { t.containers = nil },
		"does not limit":                func(t *Tree, _ *Node) { t.quotas = nil },
		"is ephemeral and has children": func(t *Tree, _ *Node) { n := t.Get("/a"); n.text = newText(ephemeral, 7, "/a", n.bytes()) },
		"nodes and":                     func(t *Tree, _ *Node) { t.index.n++ },
		"ephemerals,":                   func(t *Tree, _ *Node) { t.totals.ephemerals++ },
		"containers, 3 indexed":         func(t *Tree, _ *Node) { t.containers[new(Node)] = struct{}{} },
		"limits, 2 indexed":             func(t *Tree, n *Node) { t.quotas["/nope"] = n },
		"left something behind":         func(t *Tree, _ *Node) { t.undo.active = true },
		"totals are":                    func(t *Tree, _ *Node) { t.totals.digest++ },
		"references instead of":         func(t *Tree, n *Node) { n.acl.refs++ },
		"lists in use":                  func(t *Tree, n *Node) { t.acls.intern(nil) },
	} {
		tree := varied(t)
		spoil(tree, tree.Get("/a/b/c"))
		if err := tree.Check(); err == nil || !strings.Contains(err.Error(), want) && want != "lists in use" {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// orphan adds a node that isn't in the index.
func orphan(t *Tree) *Node {
	n := t.nodes.take()
	n.state = state{text: newText(persistent, 0, "/orphan", nil), acl: t.root.acl}
	return n
}

func TestDumpFails(t *testing.T) {
	t.Parallel()
	w := failAfter(0)
	if err := New().Dump(&w); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestIndex compares the index with a map. It also uses a single small shard, so that
// probes collide.
func TestIndex(t *testing.T) {
	t.Parallel()
	g := newGenerator(5)
	of := new(nodes)
	x := newIndex(of)
	one := shard{}
	want := map[string]*Node{}
	for range 50_000 {
		path := "/" + strconv.Itoa(g.Intn(2000))
		n := want[path]
		h := uint32(g.Intn(3)) + 1<<uint(len(path)*3)
		if n == nil {
			n = of.take()
			n.text, n.epoch = newText(persistent, 0, path, nil), h
			want[path] = n
			x.put(n)
			if (one.n+1)*5 > len(one.slots)*4 {
				one.resize(len(one.slots) + len(one.slots)/2 + 4)
			}
			one.put(slot{n.epoch, n.number})
			one.n++
		} else if g.Intn(3) > 0 {
			delete(want, path)
			x.remove(n)
			x.remove(n) // a second time has no effect
			one.vacate(one.find(of, path, n.epoch))
			one.n--
			of.vacate(n)
		}
	}
	if x.n != len(want) || one.n != len(want) {
		t.Fatalf("%d and %d nodes instead of %d", x.n, one.n, len(want))
	}
	seen := 0
	for n := range of.all {
		seen++
		if want[n.path()] != n {
			t.Fatalf("%q is too much", n.path())
		}
	}
	for path, n := range want {
		if x.get(path) != n || one.find(of, path, n.epoch) < 0 || one.slots[one.find(of, path, n.epoch)].node != n.number {
			t.Fatalf("%q is not found", path)
		}
	}
	for range of.all {
		seen--
		break
	}
	if seen != len(want)-1 {
		t.Errorf("%d nodes seen", seen+1)
	}
	for _, n := range want {
		x.remove(n)
	}
	for i := range x.shards {
		if len(x.shards[i].slots) > 8 {
			t.Errorf("an empty shard has %d slots", len(x.shards[i].slots))
		}
	}
}

// We should not mix up different lists with the same hash.
func TestInternCollisions(t *testing.T) {
	t.Parallel()
	table := newACLTable()
	a := table.intern(proto.OpenACL())
	b, c := &aclEntry{hash: a.hash, list: list("1 ip ::1")}, &aclEntry{hash: a.hash, list: list("2 ip ::1")}
	table.retain(b)
	table.retain(c)
	if table.intern(proto.OpenACL()) != a || a.refs != 2 {
		t.Error("not shared")
	}
	table.release(b) // in the middle
	table.release(c) // first
	table.release(a)
	if table.byHash[a.hash] != a || a.next != nil {
		t.Error("the wrong one is gone")
	}
	table.release(a)
	if len(table.byHash) != 0 {
		t.Error("something is left")
	}
	table.retain(a)
	if table.intern(proto.OpenACL()) != a {
		t.Error("does not come back")
	}
}

// A failed multi should restore even the order of the children.
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

package arena

import (
	"strings"
	"testing"
)

// Check finds every fault injected here.
func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Arena, *Node){
		"not found under its path": func(_ *Arena, n *Node) { n.state.Text = NewText(Persistent, 0, "/elsewhere", n.Data()) },
		"has the root's path":      func(_ *Arena, n *Node) { n.parent = None },
		"where its number":         func(_ *Arena, n *Node) { n.number++ },
		"and 0 vacant slots":       func(a *Arena, _ *Node) { orphan(a).state = State{} },
		"neither a node nor":       func(a *Arena, _ *Node) { orphan(a).state.Text = Text{} },
		"caches the checksum":      func(_ *Arena, n *Node) { n.state.Rewrite(n.Data(), 1); *n.state.first++ },
		"not in the tree":          func(a *Arena, n *Node) { n.parent = orphan(a).number },
		"has the parent":           func(a *Arena, n *Node) { n.parent = a.Get("/").number },
		"not at its position":      func(_ *Arena, n *Node) { n.pos++ },
		"nodes and":                func(a *Arena, _ *Node) { a.n++ },
	} {
		a := New()
		var parent *Node
		for _, path := range []string{"/", "/a", "/a/b", "/a/b/c"} {
			n := a.NewNode(&State{Text: NewText(Persistent, 0, path, []byte("data"))}, 0)
			a.Attach(parent, n)
			parent = n
		}
		each := func(*Node) error { return nil }
		if err := a.Check(each); err != nil {
			t.Fatal(err)
		}
		spoil(a, parent)
		if err := a.Check(each); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// orphan adds a node that isn't in the index.
func orphan(a *Arena) *Node {
	return a.NewNode(&State{Text: NewText(Persistent, 0, "/orphan", nil), Czxid: 1}, 0)
}

package subtree

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/zkgo/zkgo/client"
)

// parallel is the number of znodes read concurrently.
const parallel = 32

// WalkOptions select what to read. The zero value reads everything.
type WalkOptions struct {
	// Depth is the number of levels below the root to read; 0 means all, −1 none.
	Depth int
	// NoData and NoACL skip data and ACLs.
	NoData, NoACL bool
	// System includes ZooKeeper's own znodes, i.e. /zookeeper and its descendants. By default, we
	// skip them unless the root is one.
	System bool
	// Vanished, if set, is called with the path below the root of every znode that
	// was deleted after its parent was read and before it was read itself.
	Vanished func(path string)
}

// Walk returns the subtree at root as a [Source]. If there is no znode at root, the error
// is client.ErrNoNode. If the client may not read a znode, the znode's Err is set, and we
// don't know its descendants.
func Walk(c *client.Client, root string, o WalkOptions) Source {
	return func(ctx context.Context) iter.Seq2[*Node, error] {
		return func(yield func(*Node, error) bool) {
			ctx, cancel := context.WithCancel(ctx)
			w := &walker{c: c, root: root, o: o}
			defer w.running.Wait()
			defer cancel()
			w.system = o.System || system(c, root)
			w.run(ctx, yield)
		}
	}
}

// walker reads a tree in order and prefetches znodes ahead of the consumer.
type walker struct {
	c       *client.Client
	root    string
	o       WalkOptions
	system  bool
	running sync.WaitGroup
}

// step is a znode to visit, in a list in the order of Compare. Its children are
// inserted into the list when they are known.
type step struct {
	path     string
	depth    int
	done     chan struct{} // nil: not started; closed: node, names and err are set
	node     *Node
	names    []string
	err      error
	expanded bool
	next     *step
}

func (w *walker) run(ctx context.Context, yield func(*Node, error) bool) {
	for head := (&step{}); head != nil; head = head.next {
		w.ahead(ctx, head)
		<-head.done
		w.expand(head)
		switch {
		case head.path != "" && errors.Is(head.err, client.ErrNoNode):
			if w.o.Vanished != nil {
				w.o.Vanished(head.path)
			}
		case head.err != nil:
			yield(nil, fmt.Errorf("reading %s: %w", Join(w.root, head.path), head.err))
			return
		case !yield(head.node, nil):
			return
		}
	}
}

// ahead prefetches the next znodes. We keep enough requests in flight to hide the network
// latency, but few enough to limit the memory.
func (w *walker) ahead(ctx context.Context, s *step) {
	for range parallel {
		if s == nil {
			return
		}
		w.begin(ctx, s)
		select {
		case <-s.done:
			w.expand(s)
		default:
		}
		s = s.next
	}
}

func (w *walker) begin(ctx context.Context, s *step) {
	if s.done != nil {
		return
	}
	s.done = make(chan struct{})
	w.running.Go(func() {
		defer close(s.done)
		s.node, s.names, s.err = w.fetch(ctx, s)
	})
}

// expand inserts the children after their parent.
func (w *walker) expand(s *step) {
	if s.expanded || s.err != nil {
		return
	}
	s.expanded = true
	slices.Sort(s.names)
	last := s
	for _, name := range s.names {
		child := &step{path: s.path + "/" + name, depth: s.depth + 1, next: last.next}
		if !w.system && system(w.c, Join(w.root, child.path)) {
			continue
		}
		last.next = child
		last = child
	}
	s.names = nil
}

// fetch reads one znode. We need separate requests for data, ACL and children, and repeat
// them if the znode was recreated in between.
func (w *walker) fetch(ctx context.Context, s *step) (*Node, []string, error) {
	path := Join(w.root, s.path)
	for {
		n, names, whole, err := w.fetchOnce(ctx, path, w.o.Depth == 0 || s.depth < w.o.Depth)
		switch {
		case errors.Is(err, client.ErrNoAuth):
			return &Node{Path: s.path, Err: err}, nil, nil
		case err != nil:
			return nil, nil, err
		case whole:
			n.Path = s.path
			return n, names, nil
		}
	}
}

// fetchOnce reports in whole whether all results belong to the same znode.
func (w *walker) fetchOnce(ctx context.Context, path string, below bool) (n *Node, names []string, whole bool, err error) {
	n = &Node{}
	if !w.o.NoData {
		if n.Data, n.Stat, err = w.c.Get(ctx, path); err != nil {
			return nil, nil, false, err
		}
	}
	czxid := n.Stat.Czxid
	if w.o.NoData || below && n.Stat.NumChildren > 0 {
		var st client.Stat
		if names, st, err = w.c.Children(ctx, path); err != nil {
			return nil, nil, false, err
		}
		if w.o.NoData {
			n.Stat, czxid = st, st.Czxid
		}
		n.Stat.Cversion, n.Stat.Pzxid, n.Stat.NumChildren = st.Cversion, st.Pzxid, st.NumChildren
		whole = st.Czxid == czxid
	} else {
		whole = true
	}
	if !below {
		names = nil
	}
	if !w.o.NoACL {
		var st client.Stat
		if n.ACL, st, err = w.c.GetACL(ctx, path); err != nil {
			return nil, nil, false, err
		}
		n.Stat.Aversion = st.Aversion
		whole = whole && st.Czxid == czxid
	}
	return n, names, whole, nil
}

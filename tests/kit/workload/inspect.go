package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tree"
)

// Inspect returns the state of a server in this process at this moment, at one
// zxid. final means that the clients have ended and that the server has caught up
// with the others.
func Inspect(rec *history.Recorder, server int, n *raftfsm.Node, final bool) *history.State {
	t := n.Tree()
	t.RLock()
	defer t.RUnlock()
	s := &history.State{Server: server, At: rec.Now(), Zxid: t.LastZxid(), Final: final,
		Digest: fmt.Sprintf("%016x", t.FullDigest()), Live: []int64{}}
	collect(t, t.Get("/"), &s.Nodes)
	slices.SortFunc(s.Nodes, func(a, b history.Node) int { return strings.Compare(a.Path, b.Path) })
	for x := range n.Sessions().All {
		s.Live = append(s.Live, x.ID)
	}
	slices.Sort(s.Live)
	return s
}

// collect appends n and all znodes below it.
func collect(t *tree.Tree, n *tree.Node, to *[]history.Node) {
	var st proto.Stat
	n.Stat(&st)
	*to = append(*to, history.Node{Path: n.Path(), Data: string(n.Data()), Stat: *history.StatOf(&st)})
	for name := range t.Children(n) {
		collect(t, t.Get(strings.TrimSuffix(n.Path(), "/")+"/"+name), to)
	}
}

// Dump reads the whole tree through a client of a server: for processes, because Inspect can't read
// their memory. It records every read, like other clients. The State has no digest and no sessions,
// and shows one zxid only if nothing changed while we read: Final is set if all replies carried the
// same zxid.
func Dump(ctx context.Context, cfg Config, server int) (*history.State, error) {
	cfg.Servers = []int{server}
	w, err := newWorld(cfg)
	if err != nil {
		return nil, err
	}
	s := newSession(w, w.rand(3, uint64(server)))
	for {
		c := s.connect(ctx)
		if c == nil {
			return nil, fmt.Errorf("workload: dump of server %d: %w", server, ctx.Err())
		}
		state := c.dump()
		if state != nil {
			c.do(&history.Op{Op: proto.OpCloseSession})
		}
		c.hangUp("dumped")
		if state != nil {
			return state, nil
		}
	}
}

// dumpedAtOnce is the number of znodes that a dump requests without waiting: a
// server with linearizable reads asks the quorum only once for requests that
// arrive together.
const dumpedAtOnce = 64

// dump walks the tree below the root. It returns nil if the connection ended.
func (c *conn) dump() *history.State {
	sync := c.do(&history.Op{Op: proto.OpSync, Path: c.w.Root})
	state := &history.State{Server: c.server, Zxid: sync.Zxid, Final: true}
	todo := []string{c.w.Root}
	for len(todo) > 0 {
		now := todo[:min(dumpedAtOnce, len(todo))]
		todo = todo[len(now):]
		var gets, lists []*call
		for _, path := range now {
			gets = append(gets, c.send(&history.Op{Op: proto.OpGetData, Path: path}))
			lists = append(lists, c.send(&history.Op{Op: proto.OpGetChildren2, Path: path}))
		}
		for i, path := range now {
			<-gets[i].done
			<-lists[i].done
			get, list := gets[i].op, lists[i].op
			if !get.Answered() || !list.Answered() {
				return nil
			}
			if list.Zxid != state.Zxid {
				state.Final, state.Zxid = false, list.Zxid
			}
			if !get.Done() || !list.Done() {
				continue
			}
			state.Nodes = append(state.Nodes, history.Node{Path: path, Data: get.Data, Stat: *list.Stat})
			for _, name := range list.Children {
				todo = append(todo, path+"/"+name)
			}
		}
	}
	slices.SortFunc(state.Nodes, func(a, b history.Node) int { return strings.Compare(a.Path, b.Path) })
	state.At = c.w.rec.Now()
	return state
}

package zktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// read calls f while it holds the tree's read lock.
func (s *Server) read(f func(t *tree.Tree)) {
	t := s.Server().Node().Tree()
	t.RLock()
	defer t.RUnlock()
	f(t)
}

// node calls f with the znode at path, and fails the test if it doesn't exist.
func (s *Server) node(path string, f func(t *tree.Tree, n *tree.Node)) {
	s.t.Helper()
	found := false
	s.read(func(t *tree.Tree) {
		if n := t.Get(path); n != nil {
			found = true
			f(t, n)
		}
	})
	if !found {
		s.fatalf("there is no znode %s; there are:\n%s", path, s.Dump())
	}
}

// Get returns the data of the znode at path. It fails the test if the znode doesn't
// exist.
func (s *Server) Get(path string) (data string) {
	s.t.Helper()
	if s.outside != nil {
		data, _ := s.outsideNode(path)
		return string(data)
	}
	s.node(path, func(_ *tree.Tree, n *tree.Node) { data = string(n.Data()) })
	return data
}

// Stat returns the metadata of the znode at path. It fails the test if the znode
// doesn't exist.
func (s *Server) Stat(path string) (st proto.Stat) {
	s.t.Helper()
	if s.outside != nil {
		_, st := s.outsideNode(path)
		return st
	}
	s.node(path, func(_ *tree.Tree, n *tree.Node) { n.Stat(&st) })
	return st
}

// Exists reports whether there is a znode at path.
func (s *Server) Exists(path string) (found bool) {
	s.t.Helper()
	if s.outside != nil {
		_, _, err := s.outside.get(path)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			s.fatalf("Exists: %v", err)
		}
		return err == nil
	}
	s.read(func(t *tree.Tree) { found = t.Get(path) != nil })
	return found
}

// Children returns the sorted names of the children of the znode at path. It fails
// the test if the znode doesn't exist.
func (s *Server) Children(path string) (names []string) {
	s.t.Helper()
	if s.outside != nil {
		s.outsideNode(path)
		return s.outside.children(path)
	}
	s.node(path, func(t *tree.Tree, n *tree.Node) { names = slices.Sorted(t.Children(n)) })
	return names
}

// Dump returns the tree as readable text, one line per znode, without the znodes
// below /zookeeper:
//
//	/
//	  app
//	    config = "v1"
//	    member-0000000000 (ephemeral of 0x100000000000001)
func (s *Server) Dump() string {
	if s.outside != nil {
		return s.outside.dump()
	}
	var b strings.Builder
	s.read(func(t *tree.Tree) {
		b.WriteString("/")
		dump(&b, t, t.Get("/"), "", 0)
	})
	return b.String()
}

// dump writes the rest of a znode's line after its name, and the znode's children.
func dump(b *strings.Builder, t *tree.Tree, n *tree.Node, path string, depth int) {
	var st proto.Stat
	n.Stat(&st)
	dumpNode(b, n.Data(), st.EphemeralOwner)
	for _, name := range slices.Sorted(t.Children(n)) {
		child := path + "/" + name
		if child != "/zookeeper" {
			b.WriteString(strings.Repeat("  ", depth+1) + name)
			dump(b, t, t.Get(child), child, depth+1)
		}
	}
}

// dumpNode writes the rest of a znode's line after the name.
func dumpNode(b *strings.Builder, data []byte, owner int64) {
	if len(data) > 0 {
		fmt.Fprintf(b, " = %q", data)
	}
	if owner != 0 {
		fmt.Fprintf(b, " (ephemeral of 0x%x)", uint64(owner))
	}
	b.WriteByte('\n')
}

// Session is the state of a session on a Server.
type Session struct {
	ID        int64
	Timeout   time.Duration
	Connected bool   // to this server
	Addr      string // the client's address, if connected
}

// Sessions returns the sessions ordered by id, including those connected to another
// member of the cluster.
func (s *Server) Sessions() []Session {
	s.t.Helper()
	s.inProcess(needsInsight)
	srv := s.Server()
	addrs := make(map[int64]string)
	for _, c := range srv.Connections() {
		addrs[c.Session] = c.Addr
	}
	var list []Session
	s.read(func(*tree.Tree) {
		for row := range srv.Node().Sessions().All {
			addr, connected := addrs[row.ID]
			list = append(list, Session{ID: row.ID, Timeout: time.Duration(row.Timeout) * time.Millisecond, Connected: connected, Addr: addr})
		}
	})
	return list
}

// Ephemerals returns the paths of all ephemeral znodes, each with the session that
// owns it.
func (s *Server) Ephemerals() map[string]int64 {
	s.t.Helper()
	s.inProcess(needsInsight)
	owners := make(map[string]int64)
	s.read(func(t *tree.Tree) {
		for id, paths := range t.EphemeralSessions() {
			for _, path := range paths {
				owners[path] = id
			}
		}
	})
	return owners
}

// Watch is a watch that a client of a Server has set.
type Watch struct {
	Path    string
	Kind    WatchKind
	Session int64
}

// WatchKind is the type of a watch.
type WatchKind string

// The kinds of watch: those set by getData and exists, those set by getChildren, and
// the two of addWatch.
const (
	DataWatch                WatchKind = "data"
	ChildWatch               WatchKind = "child"
	PersistentWatch          WatchKind = "persistent"
	PersistentRecursiveWatch WatchKind = "persistent recursive"
)

func kindOf(k watch.Kind) WatchKind {
	switch k {
	case watch.Data:
		return DataWatch
	case watch.Child:
		return ChildWatch
	case watch.Persistent:
		return PersistentWatch
	}
	return PersistentRecursiveWatch
}

// Watches returns the watches of the clients of this server, sorted.
func (s *Server) Watches() []Watch {
	s.t.Helper()
	s.inProcess(needsInsight)
	var list []Watch
	for _, w := range s.Server().Watches() {
		list = append(list, Watch{Path: w.Path, Kind: kindOf(w.Kind), Session: w.Session})
	}
	slices.SortFunc(list, func(a, b Watch) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Session, b.Session))
	})
	return list
}

// Wait waits until ok returns true. On timeout, it fails the test with a message that
// contains what.
func (s *Server) Wait(what string, ok func() bool) {
	s.t.Helper()
	if !poll(ok) {
		s.fatalf("not within %v: %s; the znodes are:\n%s", patience, what, s.Dump())
	}
}

// WaitExists waits until there is a znode at path.
func (s *Server) WaitExists(path string) {
	s.t.Helper()
	s.Wait(path+" exists", func() bool { return s.Exists(path) })
}

// WaitGone waits until there is no znode at path.
func (s *Server) WaitGone(path string) {
	s.t.Helper()
	s.Wait(path+" is gone", func() bool { return !s.Exists(path) })
}

// WaitForWatch waits until a client of this server has a watch on path, of one of the
// given kinds or, if none is given, of any kind.
func (s *Server) WaitForWatch(path string, kinds ...WatchKind) {
	s.t.Helper()
	s.inProcess(needsInsight)
	s.Wait("a watch of "+path, func() bool {
		return slices.ContainsFunc(s.Watches(), func(w Watch) bool {
			return w.Path == path && (len(kinds) == 0 || slices.Contains(kinds, w.Kind))
		})
	})
}

// WaitConnected waits until a session is connected to this server, or no longer is.
func (s *Server) WaitConnected(session int64, connected bool) {
	s.t.Helper()
	s.inProcess(needsInsight)
	s.Wait(fmt.Sprintf("session 0x%x connected: %v", session, connected), func() bool {
		return slices.ContainsFunc(s.Server().Connections(), func(c server.Connection) bool { return c.Session == session }) == connected
	})
}

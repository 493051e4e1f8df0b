package server

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// namespace is what is counted of everything below one child of the root.
type namespace struct {
	name          string
	reads, writes histogram.Summary // their sizes in bytes
	overQuota     atomic.Int64      // writes that a quota refused
}

// namespaces keeps them by name. Looking one up takes no lock: the map is replaced,
// never changed.
type namespaces struct {
	mu sync.Mutex // of who adds one
	of atomic.Pointer[map[string]*namespace]
}

// maxNamespaces is how many are told apart. Each takes some kilobytes, here and in
// whatever gathers the numbers; of a root with more children the first count.
const maxNamespaces = 256

// maxNamespaceName is the length of a name above which a namespace is not counted: names
// stand in what Prometheus reads, and a client may make one of a megabyte.
const maxNamespaceName = 256

// namespaceOf is the name of the child of the root that path is below or at; "" of
// the root.
func namespaceOf(path string) string {
	if len(path) < 2 {
		return ""
	}
	name, _, _ := strings.Cut(path[1:], "/")
	return name
}

// find returns a namespace, nil if there are too many already. It keeps no part of
// name.
func (s *namespaces) find(name string) *namespace {
	all := s.all()
	if n := all[name]; n != nil || len(all) >= maxNamespaces || len(name) > maxNamespaceName {
		return n // none is ever taken out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.all()
	n := old[name]
	if n == nil && len(old) < maxNamespaces {
		n = &namespace{name: strings.Clone(name)}
		next := make(map[string]*namespace, len(old)+1)
		maps.Copy(next, old)
		next[n.name] = n
		s.of.Store(&next)
	}
	return n
}

// all returns the map, which nobody changes.
func (s *namespaces) all() map[string]*namespace {
	if m := s.of.Load(); m != nil {
		return *m
	}
	return nil
}

// each calls f for every namespace.
func (s *namespaces) each(f func(n *namespace)) {
	for _, n := range s.all() {
		f(n)
	}
}

// tallied is how many namespaces a tally adds up for at a time.
const tallied = 4

// tally adds up what is done in a few namespaces, until flush or until it is
// another's turn: who works in some mostly goes on there, and then counting is a
// comparison and a few additions. It belongs to one goroutine.
type tally struct {
	write bool
	turn  uint8
	slots [tallied]slot
}

// slot is what has been added up for one namespace.
type slot struct {
	of                  *namespace // stays when it is empty
	n, sum, least, most int64
}

// add counts one access to path.
func (t *tally) add(s *namespaces, path string, bytes int) {
	if len(path) < 2 {
		return // the root is below no child of it
	}
	for i := range t.slots {
		if v := &t.slots[i]; v.of != nil && v.of.has(path) {
			v.add(int64(bytes))
			return
		}
	}
	of := s.find(namespaceOf(path))
	if of == nil {
		return
	}
	v := &t.slots[t.turn%tallied]
	t.turn++
	v.flush(t.write)
	v.of = of
	v.add(int64(bytes))
}

func (v *slot) add(size int64) {
	if v.n == 0 || size < v.least {
		v.least = size
	}
	v.n++
	v.sum += size
	v.most = max(v.most, size)
}

// flush hands on what has been added up.
func (t *tally) flush() {
	for i := range t.slots {
		t.slots[i].flush(t.write)
	}
}

func (v *slot) flush(write bool) {
	if v.n == 0 {
		return
	}
	to := &v.of.reads
	if write {
		to = &v.of.writes
	}
	to.ObserveMany(v.n, v.sum, v.least, v.most)
	*v = slot{of: v.of}
}

// has reports whether path is below n, or its root.
func (n *namespace) has(path string) bool {
	end := 1 + len(n.name)
	return len(path) >= end && path[1:end] == n.name && (len(path) == end || path[end] == '/')
}

// countRead counts a read of path and so many bytes.
func (s *Server) countRead(q *request, path string, bytes int) {
	if q.reads != nil {
		q.reads.add(&s.spaces, path, len(path)+bytes)
	}
}

// countWrite counts what a transaction has changed, with the bytes of its request.
func (s *Server) countWrite(a *raftfsm.Applied) {
	if a.Kind == raftfsm.KindReconfigDone {
		return // nobody's request: ZooKeeper does not count what its leader writes there
	}
	if a.Code == proto.ErrQuotaExceeded {
		r := proto.AliasReader(a.Body)
		if n := s.spaces.find(namespaceOf(r.String())); n != nil && r.Err() == nil {
			n.overQuota.Add(1)
		}
		return
	}
	changed := 0
	for i := range a.Events {
		if a.Events[i].Type != proto.EventNodeChildrenChanged {
			changed++
		}
	}
	for i := range a.Events {
		if e := &a.Events[i]; e.Type != proto.EventNodeChildrenChanged {
			s.fsm.writes.add(&s.spaces, e.Path, max(len(a.Body)/changed, len(e.Path)))
		}
	}
}

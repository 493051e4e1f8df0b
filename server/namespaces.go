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

// namespace holds the counters of everything below one child of the root.
type namespace struct {
	name          string
	reads, writes histogram.Summary // their sizes in bytes
	overQuota     atomic.Int64      // writes that a quota refused
}

// namespaces holds the namespaces by name. A lookup takes no lock: the map is
// immutable, and an addition replaces it.
type namespaces struct {
	mu sync.Mutex // held while adding a namespace
	of atomic.Pointer[map[string]*namespace]
}

// maxNamespaces bounds how many namespaces are counted. Each takes some kilobytes, here
// and in the system that collects the metrics; of a root with more children, the first
// ones are counted.
const maxNamespaces = 256

// maxNamespaceName is the longest name of a namespace that is counted: Prometheus reads
// the names, and a client may create a name of a megabyte.
const maxNamespaceName = 256

// namespaceOf returns the name of the root's child that path is at or below, "" for the
// root.
func namespaceOf(path string) string {
	if len(path) < 2 {
		return ""
	}
	name, _, _ := strings.Cut(path[1:], "/")
	return name
}

// find returns a namespace, nil if it isn't counted. It retains no part of name.
func (s *namespaces) find(name string) *namespace {
	all := s.all()
	if n := all[name]; n != nil || len(all) >= maxNamespaces || len(name) > maxNamespaceName {
		return n // namespaces are never removed
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

// all returns the map, which is immutable.
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

// tallied is how many namespaces a tally counts at a time.
const tallied = 4

// tally counts accesses in a few namespaces until flush, or until another namespace
// takes the slot. A client mostly stays in the same namespaces, and then counting costs
// a comparison and a few additions. Only one goroutine uses a tally.
type tally struct {
	write bool
	turn  uint8
	slots [tallied]slot
}

// slot counts for one namespace.
type slot struct {
	of                  *namespace // kept while the slot is empty
	n, sum, least, most int64
}

// add counts one access to path.
func (t *tally) add(s *namespaces, path string, bytes int) {
	if len(path) < 2 {
		return // the root is in no namespace
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

// flush adds the counts to the namespaces.
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

// has reports whether path is in n.
func (n *namespace) has(path string) bool {
	end := 1 + len(n.name)
	return len(path) >= end && path[1:end] == n.name && (len(path) == end || path[end] == '/')
}

// countRead counts a read of path that returned so many bytes.
func (q *request) countRead(path string, bytes int) {
	if q.reads != nil {
		q.reads.add(&q.c.s.spaces, path, len(path)+bytes)
	}
}

// countWrite counts the changes of a transaction, with the bytes of its request.
func (f *fsm) countWrite(a *raftfsm.Applied) {
	s := f.s
	if a.Kind == raftfsm.KindReconfigDone {
		return // not a client's request: ZooKeeper doesn't count what its leader writes there
	}
	if a.Code == proto.ErrQuotaExceeded {
		if n := s.spaces.find(namespaceOf(proto.LeadingPath(a.Body))); n != nil {
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

package server

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/measure"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// namespace is what is counted of everything below one child of the root.
type namespace struct {
	name          string
	reads, writes measure.Summary // their sizes in bytes
	overQuota     atomic.Int64    // writes that a quota refused
}

// namespaces keeps them by name.
type namespaces struct {
	mu sync.RWMutex
	of map[string]*namespace
}

// maxNamespaces is how many are told apart. Each takes some kilobytes, here and in
// whatever gathers the numbers; of a root with more children the first count.
const maxNamespaces = 256

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
	s.mu.RLock()
	n := s.of[name]
	s.mu.RUnlock()
	if n != nil || name == "" {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = s.of[name]; n == nil && len(s.of) < maxNamespaces {
		if s.of == nil {
			s.of = make(map[string]*namespace)
		}
		n = &namespace{name: strings.Clone(name)}
		s.of[n.name] = n
	}
	return n
}

// each calls f for every namespace.
func (s *namespaces) each(f func(n *namespace)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, n := range s.of {
		f(n)
	}
}

// tally adds up what is done in one namespace, until it is another's turn: who
// works in one mostly goes on there, and then counting is a comparison and a few
// additions.
type tally struct {
	of                  *namespace
	write               bool
	n, sum, least, most int64
}

// add counts one access to path.
func (t *tally) add(s *namespaces, path string, bytes int) {
	if t.of == nil || !t.of.has(path) {
		t.flush()
		if t.of = s.find(namespaceOf(path)); t.of == nil {
			return
		}
	}
	size := int64(bytes)
	if t.n == 0 || size < t.least {
		t.least = size
	}
	t.n++
	t.sum += size
	t.most = max(t.most, size)
}

// has reports whether path is below n, or its root.
func (n *namespace) has(path string) bool {
	end := 1 + len(n.name)
	return len(path) >= end && path[1:end] == n.name && (len(path) == end || path[end] == '/')
}

// flush hands on what has been added up.
func (t *tally) flush() {
	if t.n == 0 {
		return
	}
	to := &t.of.reads
	if t.write {
		to = &t.of.writes
	}
	to.ObserveMany(t.n, t.sum, t.least, t.most)
	t.n, t.sum, t.least, t.most = 0, 0, 0, 0
}

// countRead counts a read of path and so many bytes.
func (s *Server) countRead(q *request, path string, bytes int) {
	if q.reads != nil {
		q.reads.add(&s.spaces, path, len(path)+bytes)
	}
}

// countWrite counts what a transaction has changed, with the bytes of its request.
func (s *Server) countWrite(a *raftfsm.Applied) {
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

package stats

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/histogram"
)

// Namespace counts accesses to everything below one child of the root.
type Namespace struct {
	Name          string
	Reads, Writes histogram.Summary // their sizes in bytes
	OverQuota     atomic.Int64      // writes that a quota refused
}

// Namespaces is the set of namespaces by name. A lookup acquires no lock: the map is
// immutable, and an addition replaces it.
type Namespaces struct {
	mu sync.Mutex // held while adding a namespace
	of atomic.Pointer[map[string]*Namespace]
}

// MaxNamespaces bounds how many namespaces are counted. Each costs some kilobytes, here and
// in the system that collects the metrics. If the root has more children, we count the first
// ones.
const MaxNamespaces = 256

// MaxNamespaceName is the longest name of a namespace that is counted: Prometheus reads the
// names, and a client may create a name as long as a megabyte.
const MaxNamespaceName = 256

// NamespaceOf returns the name of the root's child that path is at or below, "" for the
// root.
func NamespaceOf(path string) string {
	if len(path) < 2 {
		return ""
	}
	name, _, _ := strings.Cut(path[1:], "/")
	return name
}

// Find returns a namespace, nil if it isn't counted. It retains no part of name.
func (s *Namespaces) Find(name string) *Namespace {
	all := s.all()
	if n := all[name]; n != nil || len(all) >= MaxNamespaces || len(name) > MaxNamespaceName {
		return n // namespaces are never removed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.all()
	n := old[name]
	if n == nil && len(old) < MaxNamespaces {
		n = &Namespace{Name: strings.Clone(name)}
		next := make(map[string]*Namespace, len(old)+1)
		maps.Copy(next, old)
		next[n.Name] = n
		s.of.Store(&next)
	}
	return n
}

// all returns the map, which is immutable.
func (s *Namespaces) all() map[string]*Namespace {
	if m := s.of.Load(); m != nil {
		return *m
	}
	return nil
}

// Each calls f for every namespace.
func (s *Namespaces) Each(f func(n *Namespace)) {
	for _, n := range s.all() {
		f(n)
	}
}

// tallied is how many namespaces a tally counts at a time.
const tallied = 4

// Tally counts accesses in a few namespaces until Flush, or until another namespace needs
// the slot. A client mostly stays in the same namespaces, so counting usually costs a
// comparison and a few additions. Only one goroutine uses a Tally.
type Tally struct {
	Write bool
	turn  uint8
	slots [tallied]slot
}

// slot counts for one namespace.
type slot struct {
	of                  *Namespace // kept while the slot is empty
	n, sum, least, most int64
}

// Add counts one access to path.
func (t *Tally) Add(s *Namespaces, path string, bytes int) {
	if len(path) < 2 {
		return // the root is in no namespace
	}
	for i := range t.slots {
		if v := &t.slots[i]; v.of != nil && v.of.has(path) {
			v.add(int64(bytes))
			return
		}
	}
	of := s.Find(NamespaceOf(path))
	if of == nil {
		return
	}
	v := &t.slots[t.turn%tallied]
	t.turn++
	v.flush(t.Write)
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

// Flush adds the counts to the namespaces.
func (t *Tally) Flush() {
	for i := range t.slots {
		t.slots[i].flush(t.Write)
	}
}

func (v *slot) flush(write bool) {
	if v.n == 0 {
		return
	}
	to := &v.of.Reads
	if write {
		to = &v.of.Writes
	}
	to.ObserveMany(v.n, v.sum, v.least, v.most)
	*v = slot{of: v.of}
}

// has reports whether path is in n.
func (n *Namespace) has(path string) bool {
	end := 1 + len(n.Name)
	return len(path) >= end && path[1:end] == n.Name && (len(path) == end || path[end] == '/')
}

package stats

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNamespaceOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"": "", "/": "", "/a": "a", "/a/b/c": "a", "/a.b/": "a.b"} {
		if got := NamespaceOf(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// TestTally checks that counts of one namespace never go to another, and that none are lost
// when another namespace needs the slot.
func TestTally(t *testing.T) {
	t.Parallel()
	var all Namespaces
	var reads Tally
	for _, path := range []string{"/a", "/a/b", "/ab", "/", "/a/c", "/a", "/b", "/c", "/d", "/a"} {
		reads.Add(&all, path, len(path))
	}
	reads.Flush()
	got := map[string][4]int64{}
	all.Each(func(n *Namespace) {
		p := n.Reads.Snapshot(time.Now())
		got[n.Name] = [4]int64{p.Count, p.Sum, p.Min, p.Max}
	})
	want := map[string][4]int64{"a": {5, 14, 2, 4}, "ab": {1, 3, 3, 3}, "b": {1, 2, 2, 2}, "c": {1, 2, 2, 2}, "d": {1, 2, 2, 2}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNamespacesAreBounded checks that a root with very many children doesn't use memory for
// all their counters.
func TestNamespacesAreBounded(t *testing.T) {
	t.Parallel()
	var all Namespaces
	var writes Tally
	for i := range 10 * MaxNamespaces {
		writes.Add(&all, fmt.Sprintf("/n%d", i), 1)
	}
	if n := len(all.all()); n != MaxNamespaces {
		t.Errorf("%d namespaces", n)
	}
	all.mu.Lock() // rejected names must not wait for it
	defer all.mu.Unlock()
	if n := all.Find("another"); n != nil {
		t.Errorf("%q is counted separately", n.Name)
	}
}

// TestCountingAllocatesNothing counts in the same namespace and in changing ones.
func TestCountingAllocatesNothing(t *testing.T) {
	var all Namespaces
	var reads Tally
	if n := testing.AllocsPerRun(100, func() {
		reads.Add(&all, "/a/b", 10)
		reads.Add(&all, "/a/c", 10)
		for _, path := range []string{"/b", "/c", "/d", "/e", "/f"} { // more than the number of slots
			reads.Add(&all, path, 10)
		}
		reads.Flush()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCountRead measures the cost of counting a read by its namespace.
func BenchmarkCountRead(b *testing.B) {
	var all Namespaces
	var reads Tally
	for b.Loop() {
		reads.Add(&all, "/kafka/brokers/topics/some-topic", 100)
	}
}

// BenchmarkCountReadElsewhere is the same if consecutive namespaces always differ.
func BenchmarkCountReadElsewhere(b *testing.B) {
	var all Namespaces
	var reads Tally
	paths := []string{"/kafka/brokers/topics/some-topic", "/solr/collections"}
	for i := 0; b.Loop(); i++ {
		reads.Add(&all, paths[i&1], 100)
	}
}

// A child of the root with a name of a megabyte should not be counted.
func TestLongNamespacesAreNotCounted(t *testing.T) {
	t.Parallel()
	var s Namespaces
	if s.Find(strings.Repeat("n", MaxNamespaceName)) == nil || s.Find(strings.Repeat("n", MaxNamespaceName+1)) != nil {
		t.Error("wrong bound of a name")
	}
}

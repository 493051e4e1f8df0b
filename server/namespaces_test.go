package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

func TestNamespaceOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"": "", "/": "", "/a": "a", "/a/b/c": "a", "/a.b/": "a.b"} {
		if got := namespaceOf(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// TestTally: counts of one namespace never go to another, and none are lost when
// another namespace takes the slot.
func TestTally(t *testing.T) {
	t.Parallel()
	var all namespaces
	var reads tally
	for _, path := range []string{"/a", "/a/b", "/ab", "/", "/a/c", "/a", "/b", "/c", "/d", "/a"} {
		reads.add(&all, path, len(path))
	}
	reads.flush()
	got := map[string][4]int64{}
	all.each(func(n *namespace) {
		p := n.reads.Snapshot(time.Now())
		got[n.name] = [4]int64{p.Count, p.Sum, p.Min, p.Max}
	})
	want := map[string][4]int64{"a": {5, 14, 2, 4}, "ab": {1, 3, 3, 3}, "b": {1, 2, 2, 2}, "c": {1, 2, 2, 2}, "d": {1, 2, 2, 2}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNamespacesAreBounded: a root with very many children takes no memory for them.
func TestNamespacesAreBounded(t *testing.T) {
	t.Parallel()
	var all namespaces
	var writes tally
	for i := range 10 * maxNamespaces {
		writes.add(&all, fmt.Sprintf("/n%d", i), 1)
	}
	if n := len(all.all()); n != maxNamespaces {
		t.Errorf("%d namespaces", n)
	}
	all.mu.Lock() // rejected names must not wait for it
	defer all.mu.Unlock()
	if n := all.find("another"); n != nil {
		t.Errorf("%q is told apart", n.name)
	}
}

// TestCountingAllocatesNothing: whether the namespace stays the same or changes.
func TestCountingAllocatesNothing(t *testing.T) {
	var all namespaces
	var reads tally
	if n := testing.AllocsPerRun(100, func() {
		reads.add(&all, "/a/b", 10)
		reads.add(&all, "/a/c", 10)
		for _, path := range []string{"/b", "/c", "/d", "/e", "/f"} { // more than there are slots
			reads.add(&all, path, 10)
		}
		reads.flush()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCountRead measures the cost of counting a read by its namespace.
func BenchmarkCountRead(b *testing.B) {
	var all namespaces
	var reads tally
	for b.Loop() {
		reads.add(&all, "/kafka/brokers/topics/some-topic", 100)
	}
}

// BenchmarkCountReadElsewhere is the same if consecutive namespaces always differ.
func BenchmarkCountReadElsewhere(b *testing.B) {
	var all namespaces
	var reads tally
	paths := []string{"/kafka/brokers/topics/some-topic", "/solr/collections"}
	for i := 0; b.Loop(); i++ {
		reads.add(&all, paths[i&1], 100)
	}
}

// Metrics of quotas have the bounds of the other metrics of namespaces: a client may set
// any number of quotas, on paths of any length.
func TestMetricsOfQuotasAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	quota := func(name string) {
		for _, path := range []string{"/zookeeper/quota/" + name, "/zookeeper/quota/" + name + "/zookeeper_limits"} {
			w.create(path, []byte("count=5,bytes=-1"), proto.ModePersistent)
		}
	}
	for i := range maxNamespaces + 50 {
		quota(fmt.Sprintf("n%04d", i))
	}
	quota("0" + strings.Repeat("x", maxNamespaceName))
	shown := 0
	for _, m := range s.Status().Metrics() {
		if m.Name == "quota_count_limit_per_namespace" {
			shown++
			if len(m.Key) > maxNamespaceName {
				t.Errorf("a name of %d bytes", len(m.Key))
			}
		}
	}
	if shown != maxNamespaces {
		t.Errorf("%d quotas are shown", shown)
	}
}

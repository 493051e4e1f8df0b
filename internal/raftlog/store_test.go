package raftlog

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		if found, err := HasState(vfs.OS{}, o.LogDir, o.SnapDir); !found || err != nil {
			t.Fatalf("HasState of an open store: %v, %v", found, err)
		}
		expect(t, s, 0, 0, nil)
		store(t, s, 1, 200, 1)
		expect(t, s, 1, 200, term(1))
		s = reopen(t, s)
		expect(t, s, 1, 200, term(1))
		store(t, s, 201, 220, 2)
		s = reopen(t, s)
		expect(t, s, 1, 220, func(i uint64) uint64 { return 1 + (i-1)/200 })
		if n := s.MeanEntryBytes(); n < 1 || n > 300 {
			t.Errorf("MeanEntryBytes = %d", n)
		}
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	s := Memory(nil)
	store(t, s, 1, 50, 1)
	expect(t, s, 1, 50, term(1))
	if err := s.Logs().DeleteRange(1, 20); err == nil {
		t.Fatal("compaction without a snapshot was allowed")
	}
	id := snapshot(t, s, 20, 1, []byte("state"))
	must.Do(t, s.Logs().DeleteRange(1, 20))
	expect(t, s, 21, 50, term(1))
	if got := readState(t, s, id); string(got) != "state" {
		t.Fatalf("state %q", got)
	}
	mustClose(t, s)
	if _, err := s.Logs().LastIndex(); err != ErrClosed {
		t.Fatalf("after Close: %v", err)
	}
}

func TestCacheServesTheNewest(t *testing.T) {
	t.Parallel()
	c := cache{limit: 10 * (entryOverhead + 300)}
	for i := uint64(1); i <= 100; i++ {
		c.add([]*raft.Log{entry(i, 1)})
	}
	var l raft.Log
	if !c.get(100, &l) || sameData(&l, entry(100, 1)) != true {
		t.Fatal("the newest entry is not cached")
	}
	if c.get(1, &l) || c.bytes > c.limit {
		t.Fatalf("the cache holds %d bytes, limit %d", c.bytes, c.limit)
	}
	c.remove(95, 100)
	if c.get(95, &l) || !c.get(94, &l) {
		t.Fatal("removing the end")
	}
	c.remove(1, 93)
	if c.get(93, &l) || !c.get(94, &l) || c.bytes != entryBytes(entry(94, 1)) {
		t.Fatal("removing the front")
	}
	c.add(entries(200, 201, 1))
	if c.get(94, &l) || !c.get(200, &l) {
		t.Fatal("a gap must empty the cache")
	}
}

func sameData(a, b *raft.Log) bool { return a.Index == b.Index && bytes.Equal(a.Data, b.Data) }

func TestDeleteRange(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		store(t, s, 1, 100, 1)
		if err := s.Logs().DeleteRange(1, 40); err == nil {
			t.Fatal("compaction without a snapshot was allowed")
		}
		snapshot(t, s, 40, 1, []byte("x"))
		if err := s.Logs().DeleteRange(1, 41); err == nil {
			t.Fatal("compaction beyond the snapshot was allowed")
		}
		if err := s.Logs().DeleteRange(50, 60); err == nil {
			t.Fatal("removing from the middle was allowed")
		}
		must.Do(t, s.Logs().DeleteRange(1, 40))
		expect(t, s, 41, 100, term(1))
		s = reopen(t, s)
		expect(t, s, 41, 100, term(1))

		// A conflict with the leader, then the leader's entries.
		for hi, n := uint64(100), uint64(2); n < 6; n++ {
			must.Do(t, s.Logs().DeleteRange(hi-20, hi+7))
			expect(t, s, 41, hi-21, func(i uint64) uint64 { return termAfter(i, n-1) })
			s = reopen(t, s)
			store(t, s, hi-20, hi-10, n)
			s = reopen(t, s)
			hi -= 10
			expect(t, s, 41, hi, func(i uint64) uint64 { return termAfter(i, n) })
		}
		must.Do(t, s.Logs().DeleteRange(1, 1000))
		expect(t, s, 0, 0, nil)
		s = reopen(t, s)
		store(t, s, 41, 50, 9)
		s = reopen(t, s)
		expect(t, s, 41, 50, term(9))
	})
}

// termAfter is the term of entry i after the rounds of TestDeleteRange up to n: round r
// (from 2) removes the entries after 79-10(r-2) and stores term r up to 90-10(r-2).
func termAfter(i, n uint64) uint64 {
	for r := n; r >= 2; r-- {
		if i >= 80-10*(r-2) {
			return r
		}
	}
	return 1
}

func TestGapsAreRefused(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		store(t, s, 1, 3, 1)
		for _, i := range []uint64{2, 3, 5} {
			if err := s.Logs().StoreLog(entry(i, 1)); err == nil {
				t.Errorf("index %d after 3 was accepted", i)
			}
		}
		store(t, s, 4, 4, 1)
		expect(t, s, 1, 4, term(1))
	})
}

func TestVoteIsOneTransaction(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		st := s.Stable()
		vote := func(s *Store) (uint64, string) {
			n, err := s.Stable().GetUint64([]byte("LastVoteTerm"))
			c, err2 := s.Stable().Get([]byte("LastVoteCand"))
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			return n, string(c)
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(st.SetUint64([]byte("CurrentTerm"), 7))
		must(st.SetUint64([]byte("LastVoteTerm"), 7))
		must(st.Set([]byte("LastVoteCand"), []byte("a")))
		writes := observe(s)
		must(st.SetUint64([]byte("LastVoteTerm"), 8))
		if n, c := vote(mustOpen(t, crashed(t, o))); n != 7 || c != "a" {
			t.Fatalf("stopped within a vote: %d %q, want 7 a", n, c)
		}
		must(st.Set([]byte("LastVoteCand"), []byte("b")))
		if n := len(writes()); n != 1 {
			t.Errorf("a vote took %d transactions", n)
		}
		for _, s := range []*Store{mustOpen(t, crashed(t, o)), reopen(t, s)} {
			if n, c := vote(s); n != 8 || c != "b" {
				t.Fatalf("vote %d %q, want 8 b", n, c)
			}
			if n, err := s.Stable().GetUint64([]byte("CurrentTerm")); n != 7 || err != nil {
				t.Fatalf("term %d, %v", n, err)
			}
		}
	})
}

func TestOneStoreAtATime(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), filepath.Join(o.LogDir, "lock")) {
			t.Fatalf("second Open: %v", err)
		}
		mustClose(t, s)
		other := o
		other.Kind = map[Kind]Kind{WAL: Bolt, Bolt: WAL}[o.Kind]
		if _, err := Open(other); err == nil || !strings.Contains(err.Error(), o.LogDir) {
			t.Fatalf("Open as %s: %v", other.Kind, err)
		}
		o.Kind = ""
		if s := mustOpen(t, o); s.kind == other.Kind {
			t.Fatalf("opened as %s", s.kind)
		}
	})
}

func TestHasState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if found, err := HasState(vfs.OS{}, filepath.Join(dir, "a"), filepath.Join(dir, "b")); found || err != nil {
		t.Fatalf("missing directories: %v %v", found, err)
	}
	if found, err := HasState(vfs.OS{}, dir, dir); found || err != nil {
		t.Fatalf("empty directory: %v %v", found, err)
	}
	s := Options{LogDir: filepath.Join(dir, "l"), SnapDir: dir}
	st := mustOpen(t, s)
	snapshot(t, st, 1, 1, nil)
	if found, err := HasState(vfs.OS{}, filepath.Join(dir, "x"), dir); !found || err != nil {
		t.Fatalf("a snapshot: %v %v", found, err)
	}
}

// TestConcurrentUse runs readers and votes concurrently with appends and compaction, like
// Raft.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		o.CacheBytes = 4096
		s := mustOpen(t, o)
		store(t, s, 1, 10, 1)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		run := func(f func()) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					select {
					case <-stop:
						return
					default:
						f()
					}
				}
			}()
		}
		for range 2 {
			run(func() {
				first, _ := s.Logs().FirstIndex()
				last, _ := s.Logs().LastIndex()
				for i := first; i <= last; i += 7 {
					var l raft.Log
					found, err := s.logs.read(i, &l) // GetLog would hang on an error
					if err == nil && found {
						err = sameEntry(&l, entry(i, 1))
					}
					if err != nil {
						t.Error(err)
					}
				}
				s.Hanging()
			})
		}
		run(func() {
			if err := s.Stable().SetUint64([]byte("CurrentTerm"), 1); err != nil {
				t.Error(err)
			}
		})
		for i := uint64(11); i < 200; i += 10 {
			store(t, s, i, i+9, 1)
			if i%50 == 1 {
				snapshot(t, s, i, 1, []byte("s"))
				first, _ := s.Logs().FirstIndex()
				if err := s.Logs().DeleteRange(first, i-5); err != nil {
					t.Error(err)
				}
			}
		}
		close(stop)
		wg.Wait()
		select {
		case err := <-s.Failed():
			t.Fatal(err)
		default:
		}
	})
}

// observe collects the durations of writes from now on.
func observe(s *Store) (writes func() []time.Duration) {
	var mu sync.Mutex
	var seen []time.Duration
	s.SetObserver(func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, d)
	})
	return func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

func TestObserver(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testOptions(t, WAL))
	writes := observe(s)
	store(t, s, 1, 20, 1)
	if all := writes(); len(all) == 0 || slices.Min(all) <= 0 {
		t.Fatalf("observed %v", all)
	}
}

// TestRaftAfterClose: if a failure makes Raft panic, the call should not return to a Raft
// that we have abandoned and that is still running.
func TestRaftAfterClose(t *testing.T) {
	for name, call := range map[string]func(*Store) error{
		"GetLog": func(s *Store) error { return s.Logs().GetLog(1, new(raft.Log)) },
		"Set":    func(s *Store) error { return s.Stable().Set([]byte("CurrentTerm"), []byte("12345678")) },
	} {
		s := Memory(nil)
		must.Do(t, s.Close())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			t.Errorf("%s returned on a closed store: %v", name, call(s))
		}()
		<-ended
	}
}

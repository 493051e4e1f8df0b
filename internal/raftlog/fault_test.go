package raftlog

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tests/kit/must"
)

var errIO = errors.New("input/output error")

// faulty is an engine with calls that fail or stall.
type faulty struct {
	storage.Engine
	mu    sync.Mutex
	fail  map[string]bool
	stall chan struct{} // if set, StoreLogs and SaveRecord wait for it
}

func (f *faulty) do(call string, run func() error) error {
	f.mu.Lock()
	fail, stall := f.fail[call], f.stall
	f.mu.Unlock()
	if stall != nil {
		<-stall
	}
	if fail {
		return errIO
	}
	return run()
}

func (f *faulty) set(call string, fail bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		f.fail = map[string]bool{}
	}
	f.fail[call] = fail
}

func (f *faulty) GetLog(i uint64, l *raft.Log) error {
	return f.do("GetLog", func() error { return f.Engine.GetLog(i, l) })
}
func (f *faulty) StoreLogs(l []*raft.Log) error {
	return f.do("StoreLogs", func() error { return f.Engine.StoreLogs(l) })
}
func (f *faulty) DeleteRange(a, b uint64) error {
	return f.do("DeleteRange", func() error { return f.Engine.DeleteRange(a, b) })
}
func (f *faulty) SaveRecord(r []byte) error {
	return f.do("SaveRecord", func() error { return f.Engine.SaveRecord(r) })
}

// TestFirstErrorIsLatched makes each call of the engine fail once. From then on we should
// acknowledge nothing, although the disk works again, and after a restart everything that
// was acknowledged should be there.
func TestFirstErrorIsLatched(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		calls := map[string]func(s *Store) error{
			"GetLog":      func(s *Store) error { return s.Logs().GetLog(3, &raft.Log{}) },
			"StoreLogs":   func(s *Store) error { return s.Logs().StoreLog(entry(21, 1)) },
			"DeleteRange": func(s *Store) error { return s.Logs().DeleteRange(1, 10) },
			"SaveRecord":  func(s *Store) error { return s.Stable().SetUint64([]byte("CurrentTerm"), 9) },
		}
		for name, call := range calls {
			t.Run(name, func(t *testing.T) { latched(t, testOptions(t, o.Kind), name, call) })
		}
	})
}

func latched(t *testing.T, o Options, name string, call func(*Store) error) {
	var f *faulty
	o.wrapEngine = func(e storage.Engine) storage.Engine { f = &faulty{Engine: e}; return f }
	s := mustOpen(t, o)
	store(t, s, 1, 20, 1)
	snapshot(t, s, 10, 1, []byte("s"))
	f.set(name, true)

	returned := make(chan string, 10)
	run := func(what string, g func() error) {
		go func() {
			if err := g(); err == nil {
				returned <- what + " was acknowledged"
			} else {
				returned <- what
			}
		}()
	}
	run(name, func() error { return call(s) })
	select {
	case err := <-s.Failed():
		if !errors.Is(err, errIO) || !strings.Contains(err.Error(), o.LogDir) {
			t.Errorf("Failed: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Failed reports nothing")
	}
	f.set(name, false) // a retry would succeed
	run("StoreLogs again", func() error { return s.Logs().StoreLog(entry(21, 1)) })
	run("Set again", func() error { return s.Stable().Set([]byte("k"), []byte("v")) })
	run("GetLog again", func() error { return s.Logs().GetLog(20, &raft.Log{}) })
	run("LastIndex", func() error { _, err := s.Logs().LastIndex(); return err })
	select {
	case what := <-returned:
		t.Fatalf("%s returned before Close", what)
	case <-time.After(10 * time.Millisecond): // if this is too short on a slow machine, the test only detects less
	}
	mustClose(t, s)
	// Raft panics if the other calls fail, so they never return.
	want := map[string]bool{"StoreLogs again": true, "LastIndex": true}
	if name == "StoreLogs" || name == "DeleteRange" {
		want[name] = true
	}
	for range want {
		select {
		case what := <-returned:
			if !want[what] {
				t.Errorf("after Close: %s", what)
			}
		case <-time.After(patience):
			t.Fatal("a call did not return after Close")
		}
	}
	o.wrapEngine = nil
	again := mustOpen(t, o) // the calls that never return have s
	var l raft.Log
	for i := uint64(11); i <= 20; i++ {
		if err := again.Logs().GetLog(i, &l); err != nil || sameEntry(&l, entry(i, 1)) != nil {
			t.Fatalf("entry %d after the restart: %v", i, err)
		}
	}
}

// TestReceivedDamage: an entry that arrives with a wrong checksum should stop the store.
func TestReceivedDamage(t *testing.T) {
	t.Parallel()
	s := Memory(nil)
	l := entry(1, 1)
	must.Do(t, sealAll([]*raft.Log{l}))
	l.Data[0] ^= 1
	done := make(chan error)
	go func() { done <- s.Logs().StoreLogs([]*raft.Log{l}) }()
	err := <-s.Failed()
	if !errors.Is(err, errBadChecksum) || !strings.Contains(err.Error(), "entry 1 ") {
		t.Fatal(err)
	}
	s.Close()
	if err := <-done; err == nil {
		t.Fatal("it was acknowledged")
	}
}

// TestHanging delays writes in fake time.
func TestHanging(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"StoreLogs", "Set"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Memory(nil)
				release := make(chan struct{})
				f := &faulty{Engine: s.engine, stall: release}
				s.logs.engine, s.stable.engine = f, f
				writes := observe(s)
				done := make(chan error)
				go func() {
					if call == "Set" {
						done <- s.Stable().SetUint64([]byte("CurrentTerm"), 2)
						return
					}
					done <- s.Logs().StoreLog(entry(1, 1))
				}()
				const long = 5 * time.Second
				time.Sleep(long)
				if d := s.Hanging(); d < long || d > long+time.Millisecond {
					t.Errorf("it has been hanging for %v", d)
				}
				close(release)
				if err := <-done; err != nil {
					t.Error(err)
				}
				if d := s.Hanging(); d != 0 {
					t.Errorf("hanging for %v after the write came to its end", d)
				}
				if all := writes(); len(all) != 1 || all[0] < long {
					t.Errorf("the writes took %v", all)
				}
				mustClose(t, s)
			})
		})
	}
}

// TestCloseGivesUpOnAStuckDisk: Close should return although a write never does.
func TestCloseGivesUpOnAStuckDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Memory(nil)
		release := make(chan struct{})
		s.logs.engine = &faulty{Engine: s.engine, stall: release}
		go func() { _ = s.Logs().StoreLog(entry(1, 1)) }() // hangs, and ends with the store
		synctest.Wait()
		if err := s.Close(); err == nil {
			t.Error("Close did not tell")
		}
		close(release)
	})
}

// TestNoExtraAllocations: the wrapper adds only the slab of checksums and the growth of
// the cache to an append.
func TestNoExtraAllocations(t *testing.T) {
	s := Memory(nil)
	s.logs.engine = &nullEngine{}
	s.logs.cache.limit = 1 << 20
	data := make([]byte, 100)
	var index uint64
	batch := make([]*raft.Log, 16)
	slab := make([]raft.Log, 16)
	n := testing.AllocsPerRun(200, func() {
		for i := range batch {
			index++
			slab[i] = raft.Log{Index: index, Term: 1, Data: data}
			batch[i] = &slab[i]
		}
		must.Do(t, s.Logs().StoreLogs(batch))
	})
	if n > 4 {
		t.Errorf("%v allocations for a batch of 16 entries", n)
	}
}

type nullEngine struct{ storage.Engine }

func (nullEngine) StoreLogs([]*raft.Log) error { return nil }

func BenchmarkStoreLogs(b *testing.B) {
	for _, k := range []Kind{WAL, Bolt} {
		for _, size := range []int{100, 256 << 10} {
			b.Run(fmt.Sprintf("%s/%d", k, size), func(b *testing.B) {
				s := must.Get(Open(Options{Kind: k, Bolt: boltlog.Format{}, LogDir: b.TempDir(), SnapDir: b.TempDir()}))(b)
				defer s.Close()
				data := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for i := range b.N {
					must.Do(b, s.Logs().StoreLog(&raft.Log{Index: uint64(i + 1), Term: 1, Data: data}))
				}
			})
		}
	}
}

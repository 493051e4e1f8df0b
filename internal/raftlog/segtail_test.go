package raftlog

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// heldWrites is a file system that delays writes to the end of the log until the test
// releases them, one by one.
type heldWrites struct {
	vfs.FS
	mu    sync.Mutex
	hold  bool
	under []*heldWrite // the delayed writes, in file order
}

type heldWrite struct {
	path string
	b    []byte
	off  int64
	goOn chan error
}

func (h *heldWrites) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil || !strings.HasSuffix(name, segSuffix) || flag != os.O_RDWR|vfs.Direct {
		return f, err
	}
	return heldFile{f, h, name}, nil
}

type heldFile struct {
	vfs.File
	h    *heldWrites
	path string
}

func (f heldFile) WriteAt(b []byte, off int64) (int, error) {
	f.h.mu.Lock()
	w := &heldWrite{f.path, b, off, make(chan error, 1)}
	if !f.h.hold {
		w.goOn <- nil
	} else {
		f.h.under = append(f.h.under, w)
		slices.SortFunc(f.h.under, func(a, b *heldWrite) int { return int(a.off - b.off) })
	}
	f.h.mu.Unlock()
	if err := <-w.goOn; err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

// set starts to delay writes, or releases all delayed writes.
func (h *heldWrites) set(hold bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold = hold
	for _, w := range h.under {
		w.goOn <- nil
	}
	h.under = nil
}

// end completes the n-th delayed write.
func (h *heldWrites) end(n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.under[n].goOn <- err
	h.under = slices.Delete(h.under, n, n+1)
}

// held returns the delayed writes.
func (h *heldWrites) held() []*heldWrite {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.under)
}

// sized returns an entry of the given size in bytes, at least 1.
func sized(index uint64, bytes int) *raft.Log {
	l := entry(index, 1)
	for len(l.Data) < bytes {
		l.Data = append(l.Data, l.Data...)
	}
	l.Data = l.Data[:min(len(l.Data), max(bytes, 1))]
	return l
}

func openHeld(t *testing.T, segment int) (*Store, *heldWrites) {
	t.Helper()
	o := testOptions(t, WAL)
	h := &heldWrites{FS: vfs.OS{}}
	o.FS, o.NoCache, o.SegmentBytes = h, true, segment
	return mustOpen(t, o), h
}

func put(t *testing.T, s *Store, l *raft.Log) {
	t.Helper()
	must.Do(t, s.Logs().StoreLog(l))
}

// putHeld stores an entry and delays its write. It returns a channel that gets the
// result.
func putHeld(s *Store, l *raft.Log) chan error {
	done := make(chan error, 1)
	go func() { done <- s.Logs().StoreLog(l) }()
	return done
}

// awaitHeld returns when n writes are delayed.
func awaitHeld(h *heldWrites, n int) {
	for deadline := time.Now().Add(patience); len(h.held()) < n && time.Now().Before(deadline); {
		<-time.After(50 * time.Microsecond)
	}
}

// grow stores an entry that makes the log grow, and delays the write of the zeros and all
// later writes.
func grow(t *testing.T, s *Store, h *heldWrites, index uint64) {
	t.Helper()
	tail := lastTail(t, s)
	h.set(true)
	done := putHeld(s, sized(index, int(max(100, tail.size-tail.end-zeroAhead(tail.end)/2))))
	awaitHeld(h, 1)
	h.end(0, nil)
	must.Do(t, <-done)
	awaitHeld(h, 1)
	if n := len(h.held()); n != 1 {
		t.Fatalf("%d writes are under way, want one of zeros", n)
	}
}

// tear writes random sectors of a write to a file, and reports whether they include
// everything that isn't zero.
func tear(t *testing.T, rng *rand.Rand, path string, w *heldWrite) (whole bool) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	whole = true
	share := []int{0, 1, 50, 99, 100}[rng.IntN(5)]
	for at := 0; at < len(w.b); at += sectorSize {
		sector := w.b[at : at+sectorSize]
		if rng.IntN(100) < share {
			must.Get(f.WriteAt(sector, w.off+int64(at)))(t)
			continue
		}
		was := make([]byte, sectorSize)
		_, _ = f.ReadAt(was, w.off+int64(at)) // zeros after the end
		whole = whole && string(was) == string(sector)
	}
	return whole
}

// TestGrowth: a batch that extends into zeros that are being written should wait for them
// and count as hanging. We should write other batches at the same time.
func TestGrowth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, h := openHeld(t, 4<<20)
		defer s.Close()
		put(t, s, sized(1, 100))
		grow(t, s, h, 2)
		tail := lastTail(t, s)
		zeros := h.held()[0]
		if zeros.off < tail.end || zeros.off+int64(len(zeros.b)) != tail.size || !allZero(zeros.b) {
			t.Fatalf("%d bytes are written at %d after %d, up to %d", len(zeros.b), zeros.off, tail.end, tail.size)
		}
		done := putHeld(s, sized(3, 100))
		synctest.Wait()
		h.end(0, nil) // it is before the zeros
		must.Do(t, <-done)
		done = putHeld(s, sized(4, zeroAheadMin))
		synctest.Wait()
		if n := len(h.held()); n != 1 {
			t.Fatalf("%d writes are under way, want the zeros", n)
		}
		time.Sleep(time.Minute)
		if d := s.Hanging(); d < time.Minute {
			t.Errorf("hanging for %v", d)
		}
		h.set(false)
		must.Do(t, <-done)
		for i := range uint64(4) {
			var l raft.Log
			if err := s.Logs().GetLog(i+1, &l); err != nil || l.Index != i+1 {
				t.Errorf("entry %d: %+v, %v", i+1, l, err)
			}
		}
		if err := tail.growth.wait(); err != nil {
			t.Error(err)
		}
		st, err := os.Stat(firstSegment(t, s.opts))
		if err != nil || st.Size() != tail.size {
			t.Errorf("the file has %d bytes: %v", st.Size(), err)
		}
	})
}

// TestCloseWhileTheLogGrows: Close should give up on a disk that hangs in the background.
func TestCloseWhileTheLogGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, h := openHeld(t, 4<<20)
		put(t, s, sized(1, 100))
		grow(t, s, h, 2)
		begin := time.Now()
		if err := s.Close(); err == nil {
			t.Error("Close didn't report the disk")
		}
		if d := time.Since(begin); d != s.opts.StallLimit {
			t.Errorf("Close took %v", d)
		}
		h.set(false)
		synctest.Wait() // the files are closed now
		lock, err := Lock(vfs.OS{}, s.opts.LogDir)
		if err != nil {
			t.Fatalf("the lock isn't released: %v", err)
		}
		lock.Close()
	})
}

// TestFailedWrites: after a write of a batch or of zeros has failed, we should acknowledge
// nothing. The error should name the place, and the stored entries should survive.
func TestFailedWrites(t *testing.T) {
	t.Parallel()
	for what, fails := range map[string]error{"batch": syscall.EIO, "zeros": syscall.ENOSPC} {
		s, h := openHeld(t, 4<<20)
		put(t, s, sized(1, 100))
		last := uint64(1)
		if what == "zeros" {
			last = 2
			grow(t, s, h, last)
		}
		if what == "batch" {
			h.set(true)
		}
		done := putHeld(s, sized(last+1, zeroAheadMin)) // with zeros it waits for them
		awaitHeld(h, 1)
		h.end(0, fails)
		select {
		case err := <-s.Failed():
			if !errors.Is(err, fails) || !strings.Contains(err.Error(), segSuffix) {
				t.Errorf("%s: Failed: %v", what, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: Failed reports nothing", what)
		}
		mustClose(t, s)
		if err := <-done; err == nil {
			t.Errorf("%s: the entry was acknowledged", what)
		}
		s.opts.FS = vfs.OS{}
		s = mustOpen(t, s.opts)
		if got, err := s.Logs().LastIndex(); err != nil || got != last {
			t.Errorf("%s: the log ends at %d: %v", what, got, err)
		}
	}
}

// TestPowerLoss cuts the power while a batch, and perhaps zeros, are being written.
// Random sectors of these writes are on disk. Every acknowledged entry should remain, and
// the log should accept new entries. ZKGO_CUTS sets the number of seeds.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	seeds := 150
	if n, err := strconv.Atoi(os.Getenv("ZKGO_CUTS")); err == nil {
		seeds = n
	}
	lost, kept, grown := 0, 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		s, h := openHeld(t, []int{8 << 10, 64 << 10, 4 << 20}[rng.IntN(3)])
		size := []int{60, 600, 6000, 30000}[rng.IntN(4)]
		index := uint64(0)
		for range 1 + rng.IntN(12) {
			index++
			put(t, s, sized(index, 1+rng.IntN(size)))
		}
		before := 0
		tail := lastTail(t, s)
		must.Do(t, tail.growth.wait())
		if tail.limit > 64<<10 && rng.IntN(2) == 0 {
			index++
			grow(t, s, h, index)
			before = 1
		}
		h.hold = true
		n := 1 + rng.IntN(size)
		waits := before > 0 && tail.end+int64(n) > tail.grown-vfs.BlockSize // for the zeros
		done := putHeld(s, sized(index+1, n))
		if !waits {
			awaitHeld(h, before+1)
		}
		image := crashed(t, s.opts)
		image.FS = vfs.OS{}
		whole := len(h.held()) > before
		for _, w := range h.held() {
			whole = tear(t, rng, strings.Replace(w.path, filepath.Dir(s.opts.LogDir), filepath.Dir(image.LogDir), 1), w) && whole
		}
		c, err := Open(image)
		if err != nil {
			t.Fatalf("seed %d: %d acknowledged: %v", seed, index, err)
		}
		last, err := c.Logs().LastIndex()
		if err != nil || last < index || last > index+1 || whole && last != index+1 {
			t.Fatalf("seed %d: the log ends at %d (%v), %d acknowledged, all of the next batch on disk %t", seed, last, err, index, whole)
		}
		lost, kept, grown = lost+int(index+1-last), kept+int(last-index), grown+before
		put(t, c, entry(last+1, 2))
		c = reopen(t, c)
		for i := uint64(1); i <= last+1; i++ {
			var l raft.Log
			if err := c.Logs().GetLog(i, &l); err != nil || l.Index != i || l.Term != 1+(i/(last+1)) {
				t.Fatalf("seed %d: entry %d of %d: %+v %v", seed, i, last+1, l, err)
			}
		}
		mustClose(t, c)
		h.set(false)
		must.Do(t, <-done)
		mustClose(t, s)
		os.RemoveAll(filepath.Dir(image.LogDir))
		os.RemoveAll(filepath.Dir(s.opts.LogDir))
	}
	t.Logf("%d power cuts: the batch under way was lost in %d and there in %d, and zeros were under way in %d", seeds, lost, kept, grown)
	if lost == 0 || kept == 0 || grown == 0 {
		t.Error("this has shown nothing")
	}
}

package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
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
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// heldWrites is a file system that holds writes to the end of the log until the test
// releases them, one by one.
type heldWrites struct {
	vfs.FS
	mu    sync.Mutex
	hold  bool
	under []*heldWrite // the held writes, in file order
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

// set starts to hold writes, or releases all of them.
func (h *heldWrites) set(hold bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold = hold
	for _, w := range h.under {
		w.goOn <- nil
	}
	h.under = nil
}

// end completes the n-th held write.
func (h *heldWrites) end(n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.under[n].goOn <- err
	h.under = slices.Delete(h.under, n, n+1)
}

// held returns the held writes.
func (h *heldWrites) held() []*heldWrite {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.under)
}

// command returns a command entry of the given size in bytes, at least 1.
func command(index uint64, bytes int) *raft.Log {
	l := entry(index, 1)
	l.Type = raft.LogCommand
	for len(l.Data) < bytes {
		l.Data = append(l.Data, l.Data...)
	}
	l.Data = l.Data[:min(len(l.Data), max(bytes, 1))]
	return l
}

func openBehind(t *testing.T, segment int) (*Store, *heldWrites) {
	t.Helper()
	o := testOptions(t, WAL)
	h := &heldWrites{FS: vfs.OS{}}
	o.FS, o.Behind, o.NoCache, o.SegmentBytes = h, true, true, segment
	return mustOpen(t, o), h
}

func launch(t *testing.T, s *Store, all ...*raft.Log) {
	t.Helper()
	if err := s.Logs().StoreLogs(all); err != nil {
		t.Fatal(err)
	}
}

// TestBehind: commands are written concurrently and land in order, whichever is on disk
// first. Reads and entries other than commands wait for the writes.
func TestBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, h := openBehind(t, 1<<20)
		defer s.Close()
		var mu sync.Mutex
		var done []string
		note := func(what string, f func()) {
			go func() {
				f()
				mu.Lock()
				defer mu.Unlock()
				done = append(done, what)
			}()
		}
		want := func(what ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(done)
			if !slices.Equal(done, what) {
				t.Fatalf("done: %q, want %q", done, what)
			}
		}
		launch(t, s, entry(1, 1))
		h.set(true)
		launch(t, s, command(2, 100))
		launch(t, s, command(3, 5000))
		launch(t, s, command(4, 9000), command(5, 10))
		note("1", func() { s.Await(1) })
		note("2", func() { s.Await(2) })
		note("3", func() { s.Await(3) })
		note("5", func() { s.Await(5) })
		note("read 4", func() {
			var l raft.Log
			if err := s.Logs().GetLog(4, &l); err != nil || sameEntry(&l, command(4, 9000)) != nil {
				t.Errorf("entry 4: %v", err)
			}
		})
		want("1")
		if n := len(h.held()); n != 3 {
			t.Fatalf("%d writes are under way, want 3", n)
		}
		time.Sleep(time.Minute)
		if d := s.Hanging(); d < time.Minute {
			t.Errorf("hanging for %v", d)
		}
		h.end(1, nil)
		want("1")
		h.end(0, nil)
		want("1", "2", "3")
		note("6", func() { launch(t, s, &raft.Log{Index: 6, Term: 1, Type: raft.LogNoop}) })
		want("1", "2", "3")
		h.end(0, nil)
		synctest.Wait()
		h.end(0, nil) // the write of entry 6
		want("1", "2", "3", "5", "6", "read 4")
		if d := s.Hanging(); d != 0 {
			t.Errorf("hanging for %v", d)
		}
		if n, _, longest := s.FsyncStats(); n != 5 || longest < time.Minute {
			t.Errorf("%d fsyncs of up to %v", n, longest)
		}
	})
}

// TestBehindFails: after a write has failed nothing lands and nothing is acknowledged,
// even if later writes complete. The error says where.
func TestBehindFails(t *testing.T) {
	t.Parallel()
	s, h := openBehind(t, 1<<20)
	launch(t, s, command(1, 100)) // also writes zeros
	s.Await(1)
	h.set(true)
	launch(t, s, command(2, 100))
	launch(t, s, command(3, 100))
	landed := make(chan uint64, 2)
	for i := range uint64(2) {
		go func() {
			s.Await(i + 2) // ends the goroutine
			landed <- i + 2
		}()
	}
	awaitHeld(t, h, 2)
	h.end(0, syscall.EIO)
	h.end(0, nil)
	select {
	case err := <-s.Failed():
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), segSuffix) || !strings.Contains(err.Error(), "log index 2") {
			t.Errorf("Failed: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Failed reports nothing")
	}
	mustClose(t, s)
	select {
	case i := <-landed:
		t.Errorf("entry %d has landed", i)
	case <-time.After(10 * time.Millisecond):
	}
	h.FS = vfs.OS{}
	s.opts.FS = vfs.OS{}
	s = mustOpen(t, s.opts)
	if last, err := s.Logs().LastIndex(); err != nil || last != 1 {
		t.Errorf("the log ends at %d (%v), where its first write is missing", last, err)
	}
}

// TestPowerLossBehind cuts the power while several writes are in flight, with random
// sectors of them on disk. Everything that has landed is there, later entries are there
// up to the first missing one, and the log can be continued. ZKGO_CUTS sets the number of
// seeds.
func TestPowerLossBehind(t *testing.T) {
	t.Parallel()
	seeds := 150
	if n, err := strconv.Atoi(os.Getenv("ZKGO_CUTS")); err == nil {
		seeds = n
	}
	lost, kept, grown := 0, 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		s, h := openBehind(t, []int{8 << 10, 64 << 10, 4 << 20}[rng.IntN(3)])
		size := []int{60, 600, 6000, 30000}[rng.IntN(4)]
		index := uint64(0)
		for range 1 + rng.IntN(12) {
			index++
			launch(t, s, command(index, 1+rng.IntN(size)))
			if rng.IntN(2) == 0 {
				s.Await(index)
			}
		}
		s.Await(index)
		landed := index
		if err := s.engine.(*walEngine).files.awaitRotation(); err != nil {
			t.Fatal(err)
		}
		before := 0
		if growth := lastTail(s).growth; rng.IntN(2) == 0 {
			index++
			landed, before = index, growBehind(t, s, h, index)
			grown += before
		} else {
			_ = growth.await()
			h.set(true)
		}
		for range 1 + rng.IntN(maxFlights) {
			// A batch that fills the segment, or that follows zeros in flight, waits. So
			// it must not be launched here.
			tail := lastTail(s)
			n := rng.IntN(size)
			end := tail.end + int64(n) + 3*vfs.BlockSize
			if end >= int64(s.opts.SegmentBytes) || tail.zeros > vfs.BlockEnd(tail.end) && len(h.held()) > before || tail.growth.underWay() && end > tail.growth.from {
				break
			}
			index++
			launch(t, s, command(index, 1+n))
			awaitHeld(t, h, before+int(index-landed))
		}
		image := crashed(t, s.opts)
		image.FS = vfs.OS{}
		whole := index > landed
		for _, w := range h.held() {
			whole = tear(t, rng, strings.Replace(w.path, filepath.Dir(s.opts.LogDir), filepath.Dir(image.LogDir), 1), w) && whole
		}
		c, err := Open(image)
		if err != nil {
			t.Fatalf("seed %d: %d landed, %d launched: %v", seed, landed, index, err)
		}
		last, err := c.Logs().LastIndex()
		if err != nil || last < landed || last > index || whole && last != index {
			t.Fatalf("seed %d: the log ends at %d (%v), %d landed, %d launched, all of it %t", seed, last, err, landed, index, whole)
		}
		lost, kept = lost+int(index-last), kept+int(last-landed)
		launch(t, c, entry(last+1, 2))
		mustClose(t, c)
		c = mustOpen(t, image)
		for i := uint64(1); i <= last+1; i++ {
			var l raft.Log
			if err := c.Logs().GetLog(i, &l); err != nil || l.Index != i || l.Term != 1+(i/(last+1)) {
				t.Fatalf("seed %d: entry %d of %d: %+v %v", seed, i, last+1, l, err)
			}
		}
		mustClose(t, c)
		h.set(false)
		mustClose(t, s)
		os.RemoveAll(filepath.Dir(image.LogDir))
		os.RemoveAll(filepath.Dir(s.opts.LogDir))
	}
	t.Logf("%d power cuts: of what was under way %d entries were lost, %d were there, and zeros in %d of them", seeds, lost, kept, grown)
	if lost == 0 || kept == 0 || grown == 0 {
		t.Error("this has shown nothing")
	}
}

// lastTail returns the tail that the next entry goes to.
func lastTail(s *Store) *tail {
	g := s.engine.(*walEngine).files.open
	return g[len(g)-1].tail
}

// awaitHeld returns when n writes are held.
func awaitHeld(t *testing.T, h *heldWrites, n int) {
	t.Helper()
	wait.Eventually(t, "writes are held", func() bool { return len(h.held()) >= n })
}

// growBehind stores an entry and holds all writes after it. It returns their number: one
// if the log grows there.
func growBehind(t *testing.T, s *Store, h *heldWrites, index uint64) int {
	t.Helper()
	tail, done := lastTail(s), make(chan error)
	_ = tail.growth.await()
	h.set(true)
	enough := int(max(100, tail.size-tail.end-zeroAhead(tail.end)/2))
	go func() { done <- s.Logs().StoreLogs([]*raft.Log{command(index, enough)}) }() // waits if it fills the segment
	awaitHeld(t, h, 1)
	h.end(0, nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.Await(index)
	if err := s.engine.(*walEngine).files.awaitRotation(); err != nil {
		t.Fatal(err)
	}
	if !tail.growth.underWay() {
		return 0
	}
	awaitHeld(t, h, 1)
	return len(h.held())
}

// tear writes random sectors of a write to a file, and reports whether they include
// everything that isn't zero.
func tear(t *testing.T, rng *rand.Rand, path string, w *heldWrite) (whole bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole = true
	share := []int{0, 1, 50, 99, 100}[rng.IntN(5)]
	for at := 0; at < len(w.b); at += sectorSize {
		sector := w.b[at : at+sectorSize]
		if rng.IntN(100) < share {
			if _, err := f.WriteAt(sector, w.off+int64(at)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		was := make([]byte, sectorSize)
		_, _ = f.ReadAt(was, w.off+int64(at)) // zeros after the end
		whole = whole && string(was) == string(sector)
	}
	return whole
}

// TestGrowth: a batch that extends into zeros in flight waits for them and counts as
// hanging; a batch that doesn't is written before them.
func TestGrowth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, h := openBehind(t, 4<<20)
		defer s.Close()
		launch(t, s, command(1, 100))
		s.Await(1)
		if n := growBehind(t, s, h, 2); n != 1 {
			t.Fatalf("%d writes are under way, want one of zeros", n)
		}
		zeros := h.held()[0]
		if tail := lastTail(s); zeros.off < tail.end || zeros.off+int64(len(zeros.b)) != tail.size || !allZero(zeros.b) {
			t.Fatalf("%d bytes are written at %d behind %d, up to %d", len(zeros.b), zeros.off, tail.end, tail.size)
		}
		launch(t, s, command(3, 100))
		synctest.Wait()
		h.end(0, nil)
		s.Await(3)
		launch(t, s, command(4, zeroAheadMin))
		synctest.Wait()
		if n := len(h.held()); n != 1 {
			t.Fatalf("%d writes are under way, want the zeros", n)
		}
		time.Sleep(time.Minute)
		if d := s.Hanging(); d < time.Minute {
			t.Errorf("hanging for %v", d)
		}
		h.set(false)
		s.Await(4)
		for i := range uint64(4) {
			var l raft.Log
			if err := s.Logs().GetLog(i+1, &l); err != nil || l.Index != i+1 {
				t.Errorf("entry %d: %+v, %v", i+1, l, err)
			}
		}
		_ = lastTail(s).growth.await()
		st, err := os.Stat(firstSegment(t, s.opts))
		if err != nil || st.Size() != lastTail(s).size {
			t.Errorf("the file has %d bytes: %v", st.Size(), err)
		}
	})
}

// TestGrowthFails: a log that can't grow fails like one that can't be written. The error
// says where, and the stored entries survive.
func TestGrowthFails(t *testing.T) {
	t.Parallel()
	s, h := openBehind(t, 4<<20)
	launch(t, s, command(1, 100))
	s.Await(1)
	if n := growBehind(t, s, h, 2); n != 1 {
		t.Fatalf("%d writes are under way, want one of zeros", n)
	}
	launch(t, s, command(3, zeroAheadMin))
	h.end(0, syscall.ENOSPC)
	select {
	case err := <-s.Failed():
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), segSuffix) {
			t.Errorf("Failed: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Failed reports nothing")
	}
	mustClose(t, s)
	s.opts.FS = vfs.OS{}
	s = mustOpen(t, s.opts)
	if last, err := s.Logs().LastIndex(); err != nil || last != 2 {
		t.Errorf("the log ends at %d: %v", last, err)
	}
}

// TestDamageBehind: damage to a batch that was written concurrently with others is
// detected as soon as a batch follows that was written after it had landed.
func TestDamageBehind(t *testing.T) {
	t.Parallel()
	s, h := openBehind(t, 1<<20)
	launch(t, s, command(1, 100))
	s.Await(1)
	h.set(true)
	launch(t, s, command(2, 100))
	launch(t, s, command(3, 100))
	h.set(false)
	s.Await(3)
	for _, follows := range []bool{false, true} {
		if follows {
			launch(t, s, command(4, 100))
			s.Await(4)
		}
		image := crashed(t, s.opts)
		image.FS = vfs.OS{}
		g := s.engine.(*walEngine).files.open[0]
		path := firstSegment(t, image)
		at := g.spans[1] // entry 2: as if its batch had never been written
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(make([]byte, batchHeaderLen+4+at.len), int64(at.off)-batchHeaderLen-4)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		c, err := Open(image)
		if follows {
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "log index 2") {
				t.Errorf("entry 2 is missing, which had landed before 4 was written: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("entries 2 and 3 were written together, and 2 is missing: %v", err)
		}
		if last, err := c.Logs().LastIndex(); last != 1 || err != nil {
			t.Errorf("the log ends at %d (%v)", last, err)
		}
		mustClose(t, c)
	}
}

// TestFormat: batches that are written one after the other have the same layout as before
// concurrent writes existed, so that older servers can read them. The test builds the
// layout from its description.
func TestFormat(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 1 << 20
	s := mustOpen(t, o)
	store(t, s, 1, 12, 1)
	mustClose(t, s)
	all, err := os.ReadFile(firstSegment(t, o))
	if err != nil {
		t.Fatal(err)
	}
	salt := all[24:32]
	index := uint64(1)
	for b := all[segHeaderLen:]; index <= 12; {
		count := uint64(b[4])
		n := binary.LittleEndian.Uint64(b[16:])
		body := b[40 : 40+n]
		want := []byte("1bkz")
		want = binary.LittleEndian.AppendUint32(want, uint32(count))
		want = binary.LittleEndian.AppendUint64(want, index)
		want = binary.LittleEndian.AppendUint64(want, n)
		want = append(want, salt...)
		want = binary.LittleEndian.AppendUint32(want, crc32.Checksum(body, castagnoli))
		want = binary.LittleEndian.AppendUint32(want, crc32.Checksum(want, castagnoli))
		if !bytes.Equal(b[:40], want) {
			t.Fatalf("the batch of entry %d begins with\n%x, want\n%x", index, b[:40], want)
		}
		index, b = index+count, b[40+n:]
	}
}

package raftlog

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestKilledProcess: the files of a killed process should contain everything that was
// acknowledged.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		for i := uint64(1); i <= 60; i += 6 {
			store(t, s, i, i+5, 1)
			c := mustOpen(t, crashed(t, o))
			expect(t, c, 1, i+5, term(1))
			store(t, c, i+6, i+9, 2)
			mustClose(t, c)
		}
	})
}

// TestCutTail truncates the last segment at each byte of its last two batches, by length
// and by zeroing whole sectors. The log is long enough that the file has grown: its
// initial size is on disk before the first append.
func TestCutTail(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 1 << 20
	s := mustOpen(t, o)
	const before = 600
	must.Do(t, s.Logs().StoreLogs(entries(1, before, 1)))
	two := tailEnd(t, s)
	if two <= zeroAheadMin {
		t.Fatalf("the log has only %d bytes", two)
	}
	must.Do(t, s.Logs().StoreLogs(entries(before+1, before+3, 1)))
	end := tailEnd(t, s)
	image := crashed(t, o)
	path := firstSegment(t, image)
	whole := must.Get(os.ReadFile(path))(t)
	check := func(what string, content []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(path, content, 0o640))
		log, lines := logLines()
		opts := crashed(t, image)
		opts.Logger = log
		s := mustOpen(t, opts)
		expect(t, s, 1, before, term(1))
		if !strings.Contains(lines.String(), "cutting off the last record, which is incomplete") || !strings.Contains(lines.String(), fmt.Sprintf("index=%d", before+1)) {
			t.Fatalf("%s: nothing was logged: %s", what, lines)
		}
		store(t, s, before+1, before+6, 2)
		s = reopen(t, s)
		expect(t, s, 1, before+6, func(i uint64) uint64 { return 1 + min(i/(before+1), 1) })
		mustClose(t, s)
	}
	step := 37
	for at := two + 1; at < end; at += int64(step) {
		check(fmt.Sprintf("cut at %d", at), whole[:at])
	}
	for at := two / sectorSize * sectorSize; at < end; at += sectorSize {
		content := bytes.Clone(whole)
		clear(content[max(at, two):min(at+sectorSize, end)])
		if !bytes.Equal(content[two:end], make([]byte, end-two)) {
			check(fmt.Sprintf("sector at %d", at), content)
		}
	}
}

func tailEnd(t *testing.T, s *Store) int64 { return lastTail(t, s).end }

// TestDamagedLastRecord: we should not mistake damage to a complete record for an
// interrupted write.
func TestDamagedLastRecord(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 1 << 20
	s := mustOpen(t, o)
	store(t, s, 1, 6, 1)
	end := tailEnd(t, s)
	image := crashed(t, o)
	for _, back := range []int64{20, 200, 400} {
		c := crashed(t, image)
		path := firstSegment(t, c)
		flip(t, path, end-back, 1)
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("flip %d bytes before the end: %v", back, err)
		}
	}
	// After Close the record shows that even a clean end is too early.
	mustClose(t, s)
	c := crashed(t, o)
	path := firstSegment(t, c)
	b := must.Get(os.ReadFile(path))(t)
	clear(b[segHeaderLen:])
	must.Do(t, os.WriteFile(path, b, 0o640))
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "log index 6") {
		t.Fatalf("an emptied log: %v", err)
	}
	looksDamaged(t, c, "log index 6")
	// A file has its initial size before the first append.
	must.Do(t, os.Truncate(path, end))
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "was cut") {
		t.Fatalf("a shortened log: %v", err)
	}
	looksDamaged(t, c, "was cut")
}

// looksDamaged expects LogFiles to report damage in the only file of a log.
func looksDamaged(t *testing.T, o Options, want string) {
	t.Helper()
	l, err := LookAtLog(o.LogDir, nil)
	if err != nil || len(l.Files) != 1 || l.Files[0].Err == nil || !strings.Contains(l.Files[0].Err.Error(), want) {
		t.Errorf("looking reports %+v, %v, not %q", l.Files, err, want)
	}
}

// TestFlippedBytes flips one byte anywhere in a closed store. The result should be an error
// that names a file, or the flip should make no difference. ZKGO_FLIPS sets the number of
// seeds.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	seeds := 60
	if n, err := strconv.Atoi(os.Getenv("ZKGO_FLIPS")); err == nil {
		seeds = n
	}
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		store(t, s, 1, 60, 1)
		snapshot(t, s, 30, 1, bytes.Repeat([]byte("state"), 200))
		snapshot(t, s, 50, 1, bytes.Repeat([]byte("newer"), 200))
		must.Do(t, s.Logs().DeleteRange(1, 35))
		for _, kv := range [][2]string{{"CurrentTerm", "00000001"}, {"LastVoteTerm", "00000001"}, {"LastVoteCand", "b"}} {
			must.Do(t, s.Stable().Set([]byte(kv[0]), []byte(kv[1])))
		}
		mustClose(t, s)
		want := must.Get(contents(o))(t)
		paths, sizes := files(t, filepath.Dir(o.LogDir))
		caught := 0
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			c := crashed(t, o)
			n := rng.IntN(len(paths))
			at, mask := rng.Int64N(sizes[n]), byte(1)<<rng.IntN(8)
			path := filepath.Join(filepath.Dir(c.LogDir), paths[n])
			flip(t, path, at, mask)
			got, err := contents(c)
			switch {
			case err != nil:
				caught++
				if !strings.Contains(err.Error(), filepath.Dir(c.LogDir)) {
					t.Errorf("seed %d: %s byte %d mask %x: error names no file: %v", seed, paths[n], at, mask, err)
				}
			case got != want:
				t.Errorf("seed %d: %s byte %d mask %x: different content without an error", seed, paths[n], at, mask)
			}
			os.RemoveAll(filepath.Dir(c.LogDir))
		}
		t.Logf("%d flips, %d caught, the others made no difference", seeds, caught)
	})
}

// files lists the useful targets: the record files, without the zeros after their end,
// which would be most of the space.
func files(t *testing.T, root string) (paths []string, sizes []int64) {
	t.Helper()
	must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			rel, _ := filepath.Rel(root, path)
			paths, sizes = append(paths, rel), append(sizes, int64(n))
		}
		return err
	}))
	return paths, sizes
}

// contents describes everything that Raft can read from a store.
func contents(o Options) (string, error) {
	s, err := Open(o)
	if err != nil {
		return "", err
	}
	defer s.Close()
	var b strings.Builder
	for i := s.logs.first; i <= s.logs.last; i++ {
		var l raft.Log
		if _, err := s.logs.read(i, &l); err != nil { // GetLog would block
			return "", err
		}
		fmt.Fprintf(&b, "%d %d %d %x\n", l.Index, l.Term, l.Type, l.Data)
	}
	for _, k := range []string{"CurrentTerm", "LastVoteTerm", "LastVoteCand"} {
		v, err := s.Stable().Get([]byte(k))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %x\n", k, v)
	}
	metas, err := s.Snapshots().List()
	if err != nil {
		return "", err
	}
	m, r, err := s.Snapshots().Open(metas[0].ID)
	if err != nil {
		return "", err
	}
	defer r.Close()
	fmt.Fprintf(&b, "%+v\n", *m)
	var state bytes.Buffer
	if _, err := state.ReadFrom(r); err != nil {
		return "", err
	}
	b.Write(state.Bytes())
	return b.String(), nil
}

// TestMissingFiles removes each file of a closed store.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		store(t, s, 1, 60, 1)
		snapshot(t, s, 50, 1, []byte("state"))
		must.Do(t, s.Logs().DeleteRange(1, 35))
		mustClose(t, s)
		want := must.Get(contents(o))(t)
		paths, _ := files(t, filepath.Dir(o.LogDir))
		for _, p := range paths {
			c := crashed(t, o)
			must.Do(t, os.Remove(filepath.Join(filepath.Dir(c.LogDir), p)))
			got, err := contents(c)
			if err == nil && got != want {
				t.Errorf("%s removed: different content without an error", p)
			}
		}
	})
}

// TestDamagedMeta flips a bit in each byte of the file with the list of segments and the
// vote, and cuts the file at each byte.
func TestDamagedMeta(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	s := mustOpen(t, o)
	store(t, s, 1, 30, 1)
	must.Do(t, s.Stable().Set([]byte("CurrentTerm"), []byte("00000001")))
	mustClose(t, s)
	path := filepath.Join(o.LogDir, walDirName, metaName)
	whole := must.Get(os.ReadFile(path))(t)
	refused := func(what string, b []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(path, b, 0o640))
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := LookAtLog(o.LogDir, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: looking: %v", what, err)
		}
	}
	for at := range whole {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 4
		refused(fmt.Sprintf("byte %d", at), flipped)
		refused(fmt.Sprintf("cut at %d", at), whole[:at])
	}
	must.Do(t, os.WriteFile(path, whole, 0o640))
	expect(t, mustOpen(t, o), 1, 30, term(1))
}

// TestDamagedBoltMeta: bbolt would use the meta page of the previous transaction.
func TestDamagedBoltMeta(t *testing.T) {
	t.Parallel()
	o := testOptions(t, Bolt)
	s := mustOpen(t, o)
	store(t, s, 1, 5, 1)
	mustClose(t, s)
	for page := range int64(2) {
		c := crashed(t, o)
		flip(t, filepath.Join(c.LogDir, boltFileName), page*4096+16+48, 2) // its transaction number
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), boltFileName) {
			t.Fatalf("meta page %d: %v", page, err)
		}
	}
}

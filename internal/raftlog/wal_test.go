package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestStoppedBeforeTheNextSegment: the process is killed after the append that fills a
// segment and before the next one exists. The log should continue.
func TestStoppedBeforeTheNextSegment(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 2048
	s := mustOpen(t, o)
	store(t, s, 1, 1, 1)
	at := crashed(t, o) // its metadata lists only the first segment
	store(t, s, 2, 40, 1)
	full := firstSegment(t, o)
	b, err := os.ReadFile(full)
	if err == nil {
		err = os.WriteFile(firstSegment(t, at), b, 0o640)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, at)
	last, _ := s.Logs().LastIndex()
	if last < 3 || last == 40 {
		t.Fatalf("the first segment holds up to %d", last)
	}
	store(t, s, last+1, last+40, 1)
	s = reopen(t, s)
	expect(t, s, 1, last+40, term(1))
}

// TestStoppedBeforeTheFirstBatch: the first segment of a log exists without its first
// batch. The log may then begin at any index.
func TestStoppedBeforeTheFirstBatch(t *testing.T) {
	t.Parallel()
	for _, begin := range []uint64{3, 5, 9} {
		o := testOptions(t, WAL)
		s := mustOpen(t, o)
		must.Do(t, s.engine.(*wal).begin(5))
		o = crashed(t, o)
		s = mustOpen(t, o)
		expect(t, s, 0, 0, nil)
		snapshot(t, s, begin-1, 1, []byte("state"))
		store(t, s, begin, begin+20, 1)
		expect(t, s, begin, begin+20, term(1))
		expect(t, reopen(t, s), begin, begin+20, term(1))
	}
}

// TestRemovedEnd: after entries are removed from the end, the earlier entries should
// remain readable, and new ones should replace the removed ones, wherever the segments
// begin.
func TestRemovedEnd(t *testing.T) {
	t.Parallel()
	for keep := uint64(1); keep < 40; keep += 3 {
		s := mustOpen(t, testOptions(t, WAL))
		store(t, s, 1, 40, 1)
		must.Do(t, s.Logs().DeleteRange(keep+1, 40))
		s = reopen(t, s)
		expect(t, s, 1, keep, term(1))
		store(t, s, keep+1, keep+30, 2)
		s = reopen(t, s)
		expect(t, s, 1, keep+30, func(i uint64) uint64 { return 1 + min(i/(keep+1), 1) })
		mustClose(t, s)
	}
}

// TestDamageBeforeOtherEntries flips a byte in a batch that others follow.
func TestDamageBeforeOtherEntries(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	s := mustOpen(t, o)
	store(t, s, 1, 10, 1)
	o = crashed(t, o) // without the floor that Close records
	path := firstSegment(t, o)
	flip(t, path, segHeaderLen, 0x40)
	_, err := Open(o)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "log index 1 ") {
		t.Fatalf("Open: %v", err)
	}
}

// TestFullSegmentBeforeRemovingTheEnd removes entries from the end while the next segment
// is being started.
func TestFullSegmentBeforeRemovingTheEnd(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 512
	s := mustOpen(t, o)
	for n := uint64(1); n < 60; n += 2 { // nearly every append fills a segment
		for _, l := range []*raft.Log{entry(n, 1), entry(n+1, 1), entry(n+2, 1)} {
			must.Do(t, s.Logs().StoreLog(l))
		}
		must.Do(t, s.Logs().DeleteRange(n+2, n+2))
	}
	expect(t, s, 1, 60, term(1))
	s = reopen(t, s)
	expect(t, s, 1, 60, term(1))
}

// TestWithoutBolt: a program that doesn't include bbolt should report that.
func TestWithoutBolt(t *testing.T) {
	t.Parallel()
	dir := fillStore(t, Bolt, 3, 0)
	for _, kind := range []Kind{"", Bolt} {
		if _, err := Open(Options{Kind: kind, LogDir: dir, SnapDir: dir}); !errors.Is(err, errNoBolt) || !strings.Contains(err.Error(), dir) {
			t.Errorf("Open as %q: %v", kind, err)
		}
	}
	if l, err := LookAtLog(dir, nil); err != nil || len(l.Files) != 1 || !errors.Is(l.Files[0].Err, errNoBolt) {
		t.Errorf("looking: %+v, %v", l, err)
	}
}

// TestAppendAllocates: an append of the log should allocate little, and we should not keep
// the buffer of a large one.
func TestAppendAllocates(t *testing.T) { //nolint:paralleltest // it counts allocations
	o := testOptions(t, WAL)
	o.SegmentBytes = 1 << 30
	s := mustOpen(t, o)
	w := s.engine.(*wal)
	l := &raft.Log{Data: make([]byte, 1000)}
	logs := []*raft.Log{l}
	if n := testing.AllocsPerRun(200, func() {
		l.Index++
		must.Do(t, w.StoreLogs(logs))
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
	l.Index, l.Data = l.Index+1, make([]byte, 2*maxSpare)
	must.Do(t, w.StoreLogs(logs))
	if n := cap(lastTail(t, s).buf); n > maxSpare {
		t.Errorf("it keeps %d bytes", n)
	}
}

// TestFormat builds the layout of a segment from its description.
func TestFormat(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 1 << 20
	s := mustOpen(t, o)
	store(t, s, 1, 12, 1)
	mustClose(t, s)
	all := must.Get(os.ReadFile(firstSegment(t, o)))(t)
	salt := all[16:24]
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
	meta, err := os.ReadFile(filepath.Join(o.LogDir, walDirName, metaName))
	if want := fmt.Sprintf(`{"first":1,"segments":["%s"],"record":`, filepath.Base(firstSegment(t, o))); err != nil || !strings.HasPrefix(string(meta), want) {
		t.Errorf("the metadata is\n%s, want\n%s", meta, want)
	}
}

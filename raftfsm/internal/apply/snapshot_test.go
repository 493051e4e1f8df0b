package apply

import (
	"testing"

	"github.com/zkgo/zkgo/raftfsm/internal/snapio"
	"github.com/zkgo/zkgo/tree"
)

// watchedSink records how many snapshots are being written during a Write.
type watchedSink struct {
	numbers *Counters
	seen    []int64
}

func (w *watchedSink) Write(b []byte) (int, error) {
	w.seen = append(w.seen, w.numbers.Writing.Load())
	return len(b), nil
}
func (w *watchedSink) Close() error  { return nil }
func (w *watchedSink) Cancel() error { return nil }
func (w *watchedSink) ID() string    { return "" }

// A snapshot counts as being written only during the write. A snapshot without data
// never counts.
func TestSnapshotsBeingWritten(t *testing.T) {
	t.Parallel()
	var n Counters
	sink := &watchedSink{numbers: &n}
	i := &image{tree: tree.New().Snapshot(), numbers: &n, written: func(zxid, bytes int64) {},
		pace: snapio.Pace{Busy: func() bool { return false }, Late: func() bool { return false }}}
	for _, i := range []*image{{}, i} {
		if err := i.Persist(sink); err != nil {
			t.Fatal(err)
		}
	}
	if len(sink.seen) == 0 || n.Writing.Load() != 0 {
		t.Fatalf("written %d times, and %d afterwards", len(sink.seen), n.Writing.Load())
	}
	for _, count := range sink.seen {
		if count != 1 {
			t.Errorf("while one is written %d are", count)
		}
	}
}

// Entries applied while a due snapshot has not started request it again. That must not
// cause another snapshot right after it.
func TestOneSnapshotWhenOneIsDue(t *testing.T) {
	t.Parallel()
	c := snapCounter{maxOps: 10, maxBytes: 1 << 20, trigger: make(chan struct{}, 1)}
	c.reset()
	for range 2 {
		c.ops += c.limitOps
		c.poke()
		select {
		case <-c.trigger:
		default:
			t.Fatal("no snapshot is due after so many transactions")
		}
		c.poke()
		c.reset()
		select {
		case <-c.trigger:
			t.Fatal("a snapshot is due right after the one before")
		default:
		}
	}
}

// A snapshot is late when several times the number of transactions that makes it due
// was applied, until the next one starts.
func TestLateSnapshot(t *testing.T) {
	t.Parallel()
	c := snapCounter{maxOps: 10, maxBytes: 1 << 20, trigger: make(chan struct{}, 1)}
	for _, more := range []func(){
		func() { c.ops += lateAfter * c.maxOps },
		func() { c.bytes += c.maxBytes },
	} {
		c.reset()
		c.ops = c.limitOps
		if c.poke(); c.late.Load() {
			t.Error("a snapshot that is due is late already")
		}
		more()
		if c.poke(); !c.late.Load() {
			t.Errorf("no snapshot is late after %d transactions and %d bytes", c.ops, c.bytes)
		}
	}
	if c.reset(); c.late.Load() {
		t.Error("late after a snapshot")
	}
}

package powerloss

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/tests/kit/lossyfs"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// In the child process these variables name what to run and where.
const (
	envKind = "ZKGO_POWERLOSS_KIND"
	envDir  = "ZKGO_POWERLOSS_DIR"
	envPart = "ZKGO_POWERLOSS_PART" // "reopen" only opens, stores and closes
)

// exitFailed is the exit code of the child when the store reports an error.
const exitFailed = 3

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		w := &workload{dir: dir, kind: raftlog.Kind(os.Getenv(envKind))}
		run := w.run
		if os.Getenv(envPart) == "reopen" {
			run = w.reopen
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "workload:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

const rounds = 20

// workload drives a store through everything that Raft does to it. It marks the beginning and the
// end of each step.
type workload struct {
	dir   string
	kind  raftlog.Kind
	marks *os.File
	s     *raftlog.Store
	last  uint64
	term  uint64
}

func options(dir string, kind raftlog.Kind) raftlog.Options {
	return raftlog.Options{
		Kind: kind, Bolt: boltlog.Format{}, LogDir: filepath.Join(dir, "data", "log"), SnapDir: filepath.Join(dir, "data", "snap"),
		SegmentBytes: 4096, CacheBytes: 1, Retain: 2, CachedSnapshot: vfs.BlockSize,
	}
}

func (w *workload) mark(format string, args ...any) error {
	_, err := fmt.Fprintf(w.marks, format+"\n", args...)
	return err
}

// step marks, calls do, and marks again.
func (w *workload) step(before, after string, do func() error) error {
	if err := w.mark("%s", before); err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", before, err)
	}
	return w.mark("%s", after)
}

func (w *workload) run() (err error) {
	if w.marks, err = os.Create(filepath.Join(w.dir, lossyfs.MarkName)); err != nil {
		return err
	}
	defer w.marks.Close()
	w.term = 1
	if err := w.open(); err != nil {
		return err
	}
	for round := range rounds {
		if err := w.round(round); err != nil {
			return err
		}
	}
	return w.s.Close()
}

func (w *workload) open() error {
	return w.step("open", "opened", func() (err error) {
		w.s, err = raftlog.Open(options(w.dir, w.kind))
		if err == nil {
			go func(failed <-chan error) {
				fmt.Fprintln(os.Stderr, <-failed) // the goroutine that failed is blocked permanently
				os.Exit(exitFailed)
			}(w.s.Failed())
		}
		return err
	})
}

// reopen is the first thing that happens after a power cut.
func (w *workload) reopen() (err error) {
	if w.marks, err = os.Create(filepath.Join(w.dir, lossyfs.MarkName)); err != nil {
		return err
	}
	defer w.marks.Close()
	if err := w.open(); err != nil {
		return err
	}
	if w.last, err = w.s.Logs().LastIndex(); err != nil {
		return err
	}
	for w.term = 1000; w.term < 1003; w.term++ {
		if err := w.store(2); err != nil {
			return err
		}
	}
	return w.s.Close()
}

func (w *workload) round(n int) error {
	for i := range 3 {
		if err := w.store(uint64(1 + (n+i)%4)); err != nil {
			return err
		}
	}
	if n%3 == 1 {
		if err := w.elect(n); err != nil {
			return err
		}
	}
	if n%4 == 2 {
		if err := w.snapshot(); err != nil {
			return err
		}
	}
	if n%5 == 3 {
		if err := w.s.Close(); err != nil {
			return err
		}
		return w.open()
	}
	return nil
}

func (w *workload) store(n uint64) error {
	lo, hi := w.last+1, w.last+n
	what := fmt.Sprintf("%d %d %d", lo, hi, w.term)
	return w.step("store "+what, "stored "+what, func() error {
		var logs []*raft.Log
		for i := lo; i <= hi; i++ {
			logs = append(logs, &raft.Log{Index: i, Term: w.term, Data: entryData(i, w.term)})
		}
		w.last = hi
		return w.s.Logs().StoreLogs(logs)
	})
}

// elect votes in the next term and finds that the newest entries conflict.
func (w *workload) elect(n int) error {
	w.term++
	what := fmt.Sprintf("%d", w.term)
	err := w.step("term "+what, "termed "+what, func() error {
		return w.s.Stable().SetUint64([]byte("CurrentTerm"), w.term)
	})
	if err != nil {
		return err
	}
	what = fmt.Sprintf("%d s%d", w.term, n)
	err = w.step("vote "+what, "voted "+what, func() error {
		if err := w.s.Stable().SetUint64([]byte("LastVoteTerm"), w.term); err != nil {
			return err
		}
		return w.s.Stable().Set([]byte("LastVoteCand"), fmt.Appendf(nil, "s%d", n))
	})
	if err != nil {
		return err
	}
	lo := w.last - 2
	what = fmt.Sprintf("%d", lo)
	return w.step("remove "+what, "removed "+what, func() error {
		last := w.last
		w.last = lo - 1
		return w.s.Logs().DeleteRange(lo, last)
	})
}

func (w *workload) snapshot() error {
	index := w.last - 3
	what := fmt.Sprintf("%d %d", index, w.term)
	err := w.step("snap "+what, "snapped "+what, func() error {
		k, err := w.s.Snapshots().Create(1, index, w.term, raft.Configuration{}, 1, nil)
		if err != nil {
			return err
		}
		if _, err := k.Write(stateData(index)); err != nil {
			return err
		}
		return k.Close()
	})
	if err != nil {
		return err
	}
	what = fmt.Sprintf("%d", index)
	return w.step("compact "+what, "compacted "+what, func() error {
		first, err := w.s.Logs().FirstIndex()
		if err != nil {
			return err
		}
		return w.s.Logs().DeleteRange(first, index)
	})
}

// entryData returns the content of an entry, up to 1.5 KiB.
func entryData(index, term uint64) []byte { return noise(index, term, 1500) }

// stateData returns the content of a snapshot, up to 20 KiB.
func stateData(index uint64) []byte { return noise(index, 1<<40, 20_000) }

func noise(a, b uint64, most int) []byte {
	rng := rand.New(rand.NewPCG(a, b))
	data := make([]byte, 1+rng.IntN(most))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

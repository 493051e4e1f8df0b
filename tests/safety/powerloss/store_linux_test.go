package powerloss

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/tests/kit/lossyfs"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// record runs the workload on a lossy disk, in its own process, and returns the
// operations on that disk.
func record(t *testing.T, kind raftlog.Kind) []lossyfs.Op {
	t.Helper()
	m := mount(t, lossyfs.Faults{})
	if out, err := child(m.Dir, kind, "").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m.Journal()
}

func child(dir string, kind raftlog.Kind, part string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envDir+"="+dir, envKind+"="+string(kind), envPart+"="+part)
	return cmd
}

// cutEverywhere cuts the power after evenly spread operations, and returns how
// many cuts it made and what broke.
func cutEverywhere(t *testing.T, ops []lossyfs.Op, kind raftlog.Kind, f lossyfs.Faults, lucky bool, few int) (int, []error) {
	t.Helper()
	return cutFrom(t, &promise{entries: map[uint64]uint64{}}, 0, ops, kind, f, lucky, few)
}

// cutFrom is cutEverywhere for a run that begins with the operation start, with p
// promised before.
func cutFrom(t *testing.T, p *promise, start int, ops []lossyfs.Op, kind raftlog.Kind, f lossyfs.Faults, lucky bool, few int) (int, []error) {
	t.Helper()
	var broken []error
	player := lossyfs.Replay(ops, f)
	dir := imageDir(t)
	made, n := 0, cuts(len(ops), few)
	next := 0
	for i, op := range ops {
		must.Do(t, player.Advance(i+1))
		if op.Kind == lossyfs.Mark {
			p.mark(strings.TrimSpace(string(op.Data)))
		}
		if i < start || i+1 < len(ops) && (i+1)*n/len(ops) == next {
			continue
		}
		next = (i + 1) * n / len(ops)
		made++
		var luck *rand.Rand
		if lucky {
			luck = rand.New(rand.NewPCG(uint64(i), 7))
		}
		image := filepath.Join(dir, fmt.Sprint(i))
		must.Do(t, player.Export(image, luck))
		if err := p.kept(image, kind); err != nil {
			broken = append(broken, fmt.Errorf("cut after operation %d of %d, while %q: %w", i+1, len(ops), p.doing, err))
			os.RemoveAll(image)
		}
	}
	return made, broken
}

// TestAcknowledgedSurvives cuts the power throughout a run of everything that
// Raft does to a store. It runs once with all unsynced data lost, and once with some unsynced data
// surviving.
func TestAcknowledgedSurvives(t *testing.T) {
	t.Parallel()
	for _, kind := range []raftlog.Kind{raftlog.WAL, raftlog.Bolt} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			ops := record(t, kind)
			for _, lucky := range []bool{false, true} {
				made, broken := cutEverywhere(t, ops, kind, lossyfs.Faults{}, lucky, 60)
				for _, err := range broken[:min(len(broken), 10)] {
					t.Errorf("unsynced data may survive: %v: %v", lucky, err)
				}
				t.Logf("%d operations, %d cuts, unsynced data may survive: %v, %d broken promises", len(ops), made, lucky, len(broken))
			}
		})
	}
}

// TestLyingDiskIsDetected checks that the same run breaks its promises on a disk
// that ignores fsync, of files or of directories. Otherwise the test above could
// not fail.
func TestLyingDiskIsDetected(t *testing.T) {
	t.Parallel()
	for _, kind := range []raftlog.Kind{raftlog.WAL, raftlog.Bolt} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			ops := record(t, kind)
			for _, f := range []lossyfs.Faults{{IgnoreFsync: true}, {IgnoreDirFsync: true}} {
				made, broken := cutEverywhere(t, ops, kind, f, false, 20)
				t.Logf("%+v: %d of %d cuts detected", f, len(broken), made)
				if len(broken) == 0 {
					t.Errorf("%+v went unnoticed", f)
				}
			}
		})
	}
}

// TestCutDuringRecovery cuts the power once, opens the store on the remaining files and appends a
// little, and cuts again at every step.
func TestCutDuringRecovery(t *testing.T) {
	t.Parallel()
	for _, kind := range []raftlog.Kind{raftlog.WAL, raftlog.Bolt} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			ops := record(t, kind)
			for i, at := range moments(ops, cuts(len(ops), 6)) {
				again(t, ops, at, kind, uint64(i))
			}
		})
	}
}

func again(t *testing.T, ops []lossyfs.Op, at int, kind raftlog.Kind, seed uint64) {
	t.Helper()
	p := &promise{entries: map[uint64]uint64{}}
	for _, op := range ops[:at] {
		if op.Kind == lossyfs.Mark {
			p.mark(strings.TrimSpace(string(op.Data)))
		}
	}
	player := lossyfs.Replay(ops, lossyfs.Faults{})
	must.Do(t, player.Advance(at))
	image := filepath.Join(imageDir(t), "image")
	must.Do(t, player.Export(image, rand.New(rand.NewPCG(seed, 11))))
	m := mount(t, lossyfs.Faults{})
	must.Do(t, m.Load(image))
	start := len(m.Journal())
	if out, err := child(m.Dir, kind, "reopen").CombinedOutput(); err != nil {
		t.Fatalf("after a cut at operation %d: %v: %s", at, err, out)
	}
	p.uncertain()
	_, broken := cutFrom(t, p, start, m.Journal(), kind, lossyfs.Faults{}, true, 12)
	for _, err := range broken {
		t.Errorf("after a cut at operation %d, while %q: %v", at, p.before, err)
	}
}

// TestFullDisk lets the disk fill up at various points. The store must report it
// and acknowledge nothing from then on. Once there is space again, no acknowledged entry is
// missing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, kind := range []raftlog.Kind{raftlog.WAL, raftlog.Bolt} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, kib := range []int64{60, 100, 140, 180} {
				m := mount(t, lossyfs.Faults{Capacity: kib << 10})
				cmd := child(m.Dir, kind, "")
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), "no space left on device") {
					t.Fatalf("%d KiB: %v: %s", kib, err, out)
				}
				p := &promise{entries: map[uint64]uint64{}}
				for _, op := range m.Journal() {
					if op.Kind == lossyfs.Mark {
						p.mark(strings.TrimSpace(string(op.Data)))
					}
				}
				image := filepath.Join(imageDir(t), "image")
				must.Do(t, m.ExportAll(image))
				if err := p.kept(image, kind); err != nil {
					t.Errorf("full at %d KiB, while %q: %v", kib, p.doing, err)
				}
				t.Logf("full at %d KiB: %d entries acknowledged, none lost", kib, len(p.entries))
			}
		})
	}
}

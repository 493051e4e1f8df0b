package powerloss

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/raftfsm/logstore"
	"github.com/zkgo/zkgo/tests/powerloss/lossyfs"
)

// record runs the workload on a lossy disk, in a process of its own, and
// returns what it did there.
func record(t *testing.T, kind logstore.Kind) []lossyfs.Op {
	t.Helper()
	m := mount(t, lossyfs.Faults{})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envDir+"="+m.Dir, envKind+"="+string(kind))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m.Journal()
}

// cutEverywhere cuts the power after evenly spread operations, and returns how
// many cuts it made and what broke.
func cutEverywhere(t *testing.T, ops []lossyfs.Op, kind logstore.Kind, f lossyfs.Faults, lucky bool, few int) (int, []error) {
	t.Helper()
	var broken []error
	p := &promise{entries: map[uint64]uint64{}}
	player := lossyfs.Replay(ops, f)
	dir := imageDir(t)
	made, n := 0, cuts(len(ops), few)
	next := 0
	for i, op := range ops {
		if err := player.Advance(i + 1); err != nil {
			t.Fatal(err)
		}
		if op.Kind == lossyfs.Mark {
			p.mark(strings.TrimSpace(string(op.Data)))
		}
		if i+1 < len(ops) && (i+1)*n/len(ops) == next {
			continue
		}
		next = (i + 1) * n / len(ops)
		made++
		var luck *rand.Rand
		if lucky {
			luck = rand.New(rand.NewPCG(uint64(i), 7))
		}
		image := filepath.Join(dir, fmt.Sprint(i))
		if err := player.Export(image, luck); err != nil {
			t.Fatal(err)
		}
		if err := p.kept(image, kind); err != nil {
			broken = append(broken, fmt.Errorf("cut after operation %d of %d, while %q: %w", i+1, len(ops), p.doing, err))
			os.RemoveAll(image)
		}
	}
	return made, broken
}

// TestAcknowledgedSurvives cuts the power throughout a run of everything Raft
// does to a store. Once everything unsynced is lost, once some of it survives.
func TestAcknowledgedSurvives(t *testing.T) {
	t.Parallel()
	for _, kind := range []logstore.Kind{logstore.WAL, logstore.Bolt} {
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

// TestLyingDiskIsDetected: on a disk that ignores fsync, of files or of
// directories, the very same run must break its promises. Else the test above
// could not fail.
func TestLyingDiskIsDetected(t *testing.T) {
	t.Parallel()
	for _, kind := range []logstore.Kind{logstore.WAL, logstore.Bolt} {
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

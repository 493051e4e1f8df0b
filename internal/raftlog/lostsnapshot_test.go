package raftlog

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestLostSnapshot: if a snapshot extends beyond the log, e.g. after it was installed, we
// should notice its loss, whether or not there is an older snapshot.
func TestLostSnapshot(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		for _, older := range []bool{false, true} {
			o := o
			o.LogDir, o.SnapDir = fmt.Sprintf("%s-%v", o.LogDir, older), fmt.Sprintf("%s-%v", o.SnapDir, older)
			s := mustOpen(t, o)
			store(t, s, 1, 9, 1)
			if older {
				snapshot(t, s, 5, 1, []byte("older"))
			}
			snapshot(t, s, 50, 2, []byte("installed"))
			must.Do(t, s.Logs().DeleteRange(1, 9))
			mustClose(t, s)
			l := must.Get(LookAtLog(o.LogDir, o.Bolt))(t)
			files, err := SnapshotFiles(o.SnapDir)
			if err == nil {
				err = l.Agrees(o.SnapDir, files)
			}
			if err != nil {
				t.Fatalf("undamaged: %v", err)
			}
			mustClose(t, mustOpen(t, o))
			must.Do(t, os.RemoveAll(files[0].Dir))
			if err := l.Agrees(o.SnapDir, files[1:]); err == nil || !strings.Contains(err.Error(), "log index 50") {
				t.Errorf("looking: %v", err)
			}
			if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "log index 50") {
				t.Errorf("opening: %v", err)
			}
		}
	})
}

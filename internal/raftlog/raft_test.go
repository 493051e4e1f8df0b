package raftlog

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// journal is a state machine that records the applied entries.
type journal struct{ lines []string }

func (j *journal) Apply(l *raft.Log) any {
	j.lines = append(j.lines, string(l.Data))
	return nil
}

func (j *journal) Snapshot() (raft.FSMSnapshot, error) {
	return journalSnapshot(strings.Join(j.lines, "\n")), nil
}

func (j *journal) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(r)
	j.lines = strings.Split(string(b), "\n")
	return err
}

type journalSnapshot string

func (s journalSnapshot) Persist(k raft.SnapshotSink) error {
	if _, err := io.WriteString(k, string(s)); err != nil {
		return err
	}
	return k.Close()
}
func (journalSnapshot) Release() {}

// node runs a single voter on a store.
func node(t *testing.T, s *Store, bootstrap bool) (*raft.Raft, *journal) {
	t.Helper()
	c := raft.DefaultConfig()
	c.LocalID = "n"
	c.Logger = hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	c.TrailingLogs = 5
	c.NoLegacyTelemetry = true
	_, trans := raft.NewInmemTransport("n")
	if bootstrap {
		servers := raft.Configuration{Servers: []raft.Server{{ID: "n", Address: "n"}}}
		must.Do(t, raft.BootstrapCluster(c, s.Logs(), s.Stable(), s.Snapshots(), trans, servers))
	}
	j := &journal{}
	r := must.Get(raft.NewRaft(c, j, s.Logs(), s.Stable(), s.Snapshots(), trans))(t)
	select {
	case <-r.LeaderCh():
	case <-time.After(patience):
		t.Fatal("no leader")
	}
	return r, j
}

// TestUnderRaft runs Raft itself on a store: elections, appends, snapshots,
// compaction, restarts.
func TestUnderRaft(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		want := 0
		for round := range 3 {
			r, j := node(t, s, round == 0)
			for range 30 {
				must.Do(t, r.Apply(fmt.Appendf(nil, "line %d", want), 0).Error())
				want++
			}
			must.Do(t, r.Snapshot().Error())
			if first, err := s.Logs().FirstIndex(); err != nil || first < uint64(want)-5 {
				t.Errorf("log begins at %d after %d entries and a snapshot: %v", first, want, err)
			}
			must.Do(t, r.Apply([]byte("last"), 0).Error())
			want++
			must.Do(t, r.Barrier(0).Error())
			must.Do(t, r.Shutdown().Error())
			if len(j.lines) != want {
				t.Fatalf("round %d: %d lines, want %d", round, len(j.lines), want)
			}
			s = reopen(t, s)
		}
	})
}

// TestBrokenDiskUnderRaft: the disk fails under a running leader. Nothing should panic,
// nothing more should be acknowledged, and everything acknowledged should survive.
func TestBrokenDiskUnderRaft(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"StoreLogs", "SaveRecord"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t, WAL)
			var f *faulty
			o.wrapEngine = func(e storage.Engine) storage.Engine { f = &faulty{Engine: e}; return f }
			s := mustOpen(t, o)
			r, _ := node(t, s, true)
			for i := range 10 {
				must.Do(t, r.Apply(fmt.Appendf(nil, "line %d", i), 0).Error())
			}
			f.set(call, true)
			done := make(chan error, 1)
			if call == "StoreLogs" {
				go func() { done <- r.Apply([]byte("lost"), 0).Error() }()
			} else {
				go func() { done <- s.Stable().SetUint64([]byte("CurrentTerm"), 99) }()
			}
			select {
			case err := <-s.Failed():
				t.Log("reported:", err)
			case <-time.After(patience):
				t.Fatal("no report of the failure")
			}
			stopped := r.Shutdown()
			mustClose(t, s)
			if call == "StoreLogs" {
				if err := <-done; err == nil {
					t.Error("an entry was acknowledged that is not on disk")
				}
				if err := stopped.Error(); err != nil {
					t.Error(err)
				}
			}
			o.wrapEngine = nil
			s = mustOpen(t, o)
			r, j := node(t, s, false)
			must.Do(t, r.Barrier(0).Error())
			must.Do(t, r.Shutdown().Error())
			if len(j.lines) != 10 {
				t.Errorf("%d entries survive, want 10", len(j.lines))
			}
		})
	}
}

package replica

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// A standalone replica leads at once, writes a snapshot, and starts on it again.
func TestStartAlone(t *testing.T) {
	t.Parallel()
	cfg := aloneConfig(t)
	r := New(cfg, apply.Detached())
	if err := r.Snapshot(); !errors.Is(err, propose.ErrNoRaft) {
		t.Errorf("a snapshot before Raft runs: %v", err)
	}
	if _, _, ok := r.LastSnapshot(); ok || r.LastSnapshotBytes() != 0 {
		t.Error("a new replica knows of a snapshot")
	}
	r = startAlone(t, cfg)
	lead(t, r)
	if err := r.Snapshot(); err != nil {
		t.Fatal(err)
	}
	zxid, at, ok := r.LastSnapshot()
	if !ok || zxid != r.Machine.Tree.LastZxid() || time.Since(at) > time.Hour || r.LastSnapshotBytes() == 0 {
		t.Errorf("snapshot of zxid %#x at %v with %d bytes: %v", zxid, at, r.LastSnapshotBytes(), ok)
	}
	if err := r.Snapshot(); err != nil {
		t.Errorf("a snapshot of nothing new: %v", err)
	}
	id := r.Identity
	stop(t, r)

	r = startAlone(t, cfg)
	if r.Identity.Cluster != id.Cluster || r.Identity.RaftID != id.RaftID {
		t.Errorf("identity %+v, was %+v", r.Identity, id)
	}
	if again, _, ok := r.LastSnapshot(); !ok || again != zxid {
		t.Errorf("started from a snapshot of zxid %#x (%v), want %#x", again, ok, zxid)
	}
	if r.Counters.SnapLoad.Snapshot(time.Now()).Count != 1 {
		t.Error("loading the snapshot was not counted")
	}
}

// A machine without a server that could read its log keeps no snapshot and no log.
func TestFleeting(t *testing.T) {
	t.Parallel()
	cfg := aloneConfig(t)
	cfg.Memory = true
	r := startAlone(t, cfg)
	lead(t, r)
	if err := r.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if r.LastSnapshotBytes() != 0 {
		t.Errorf("a snapshot of %d bytes", r.LastSnapshotBytes())
	}
	first, err := r.Stores().Logs().FirstIndex()
	last, err2 := r.Stores().Logs().LastIndex()
	if err != nil || err2 != nil || last-first > 1 {
		t.Errorf("entries %d to %d are kept: %v, %v", first, last, err, err2)
	}
}

// Start writes the first configuration only once: after a power failure between the term
// and the entry, and not on a log that has entries.
func TestBootstrapOnce(t *testing.T) {
	t.Parallel()
	cfg := aloneConfig(t)
	r := startAlone(t, cfg)
	lead(t, r)
	conf := r.Raft().GetConfiguration().Configuration()
	stop(t, r)
	r = New(cfg, apply.Detached())
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, r)
	before, err := r.Stores().Logs().LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.finishBootstrap(conf); err != nil {
		t.Fatal(err)
	}
	if after, err := r.Stores().Logs().LastIndex(); err != nil || after != before {
		t.Errorf("the log ended at %d, and ends at %d: %v", before, after, err)
	}
}

// A snapshot of another ensemble in the directories is refused, with both directories.
func TestForeignSnapshot(t *testing.T) {
	t.Parallel()
	cfg := aloneConfig(t)
	tr, table := elsewhere()
	if _, err := Seed(cfg, tr, table, nil); err != nil {
		t.Fatal(err)
	}
	r := New(cfg, apply.Detached())
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	foreign := r.Identity
	foreign.Cluster = strings.Repeat("ab", command.ClusterIDSize)
	if err := errors.Join(foreign.Write(cfg.Dirs.FS, cfg.Dirs.Log), r.Close()); err != nil {
		t.Fatal(err)
	}
	r = New(cfg, apply.Detached())
	err := r.Open()
	if err == nil || !strings.Contains(err.Error(), cfg.Dirs.Snap) || !strings.Contains(err.Error(), cfg.Dirs.Log) {
		t.Errorf("opened, or refused with %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// unreadable are stores with a log that reports a failure at the first read, and blocks
// until they are closed.
type unreadable struct {
	Stores
	failed chan error
	closed chan struct{}
	once   sync.Once
}

type unreadableLog struct {
	raft.LogStore
	u *unreadable
}

func (u *unreadable) Logs() raft.LogStore  { return unreadableLog{u.Stores.Logs(), u} }
func (u *unreadable) Failed() <-chan error { return u.failed }
func (u *unreadable) Close() error {
	u.once.Do(func() { close(u.closed) })
	return u.Stores.Close()
}

func (l unreadableLog) GetLog(uint64, *raft.Log) error {
	l.u.failed <- errStopped
	<-l.u.closed
	runtime.Goexit()
	return nil
}

// A log that can't be read ends Survey and Start with the error of the stores. No goroutine
// is left.
func TestUnreadableLog(t *testing.T) {
	t.Parallel()
	cfg := aloneConfig(t)
	r := startAlone(t, cfg)
	lead(t, r)
	stop(t, r)
	cfg.Open = func(c *Config) (Stores, error) {
		s, err := OpenStores(c)
		return &unreadable{Stores: s, failed: make(chan error, 1), closed: make(chan struct{})}, err
	}
	if _, err := Survey(cfg); !errors.Is(err, errStopped) {
		t.Errorf("Survey: %v", err)
	}
	r = New(cfg, apply.Detached())
	if err := r.StartAlone(); !errors.Is(err, errStopped) {
		t.Errorf("StartAlone: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// The pause between two lines about missing snapshots grows up to a limit, and a snapshot
// starts it again.
func TestPauseBetweenMissingSnapshots(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var m missingSnapshots
	now := time.Unix(1_000_000, 0)
	for _, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute} {
		m.failed(log, now, "/data", errStopped)
		m.failed(log, now.Add(want-1), "/data", errStopped)
		now = now.Add(want)
	}
	if n := strings.Count(out.String(), "could not write a snapshot"); n != 8 || !strings.Contains(out.String(), "directory=/data") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	m.written(log)
	if m != (missingSnapshots{}) || !strings.Contains(out.String(), "writing snapshots works again\" failures=16") {
		t.Errorf("%+v:\n%s", m, out.String())
	}
	out.Reset()
	if m.written(log); out.Len() > 0 {
		t.Errorf("nothing was missing: %s", out.String())
	}
}

// Raft's warnings are for debugging, and so are the errors that repeat. All others are errors.
func TestRaftLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := func(level slog.Level) *slog.Logger {
		out.Reset()
		return slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
	}
	log := RaftLogger(at(slog.LevelDebug))
	log.Warn("Election timeout reached")
	log.Error("failed to heartbeat to", "peer", "s2:2888")
	log.Error("failed to commit logs", "error", "it broke")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "level=DEBUG") || !strings.Contains(lines[1], "level=DEBUG") || !strings.Contains(lines[2], "level=ERROR") {
		t.Errorf("%q", lines)
	}
	log = RaftLogger(at(slog.LevelInfo))
	log.Warn("Election timeout reached")
	log.Error("failed to take snapshot", "error", "disk full")
	if out.Len() > 0 {
		t.Errorf("an operator reads %q", out.String())
	}
	RaftLogger(at(slog.LevelError + 1)).Error("failed to commit logs")
	if out.Len() > 0 {
		t.Errorf("a log that is off has %q", out.String())
	}
}

// The time of a snapshot is the last part of its name.
func TestSnapshotTime(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]time.Time{"2-17-1500": time.UnixMilli(1500), "1500": time.UnixMilli(1500), "2-17-x": {}, "": {}} {
		if got := snapshotTime(id); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}

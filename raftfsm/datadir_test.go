package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/wait"
	"github.com/zkgo/zkgo/tree"
)

// mustRefuse checks that Start fails with an error that contains all the words.
func mustRefuse(t *testing.T, cfg Config, words ...string) {
	t.Helper()
	cfg.Handler = newRecorder()
	n, err := startNode(cfg)
	if err == nil {
		n.Close()
		t.Fatalf("the server starts, want an error with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// used returns a configuration with directories that contain a closed server's state.
func used(t *testing.T, cfg Config, commands int, snapshot bool) Config {
	t.Helper()
	r := start(t, cfg)
	s := r.attach(time.Hour)
	r.do(create(s, "/a", 0))
	for i := range commands {
		r.send(set(s, "/a", fmt.Append(nil, i)))
	}
	r.do(command.Command{Kind: command.KindSync})
	if snapshot {
		if err := r.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	r.close()
	return cfg
}

func TestForeignDirectories(t *testing.T) {
	t.Parallel()
	eachDisk(t, "disk", func(t *testing.T, cfg Config) {
		used(t, cfg, 10, true)
		other := cfg
		other.ID = 2
		mustRefuse(t, other, cfg.Log.Dir, "server 1", "server 2")

		path := filepath.Join(cfg.Log.Dir, datadir.IdentityFile)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			if err := os.WriteFile(path, whole[:i], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := datadir.ReadIdentity(vfs.OS{}, cfg.Log.Dir); err == nil && i < len(whole)-1 {
				t.Fatalf("%d of %d bytes are an identity", i, len(whole))
			}
		}
		for i := range len(whole) - 1 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 4
			if err := os.WriteFile(path, flipped, 0o600); err != nil {
				t.Fatal(err)
			}
			if id, _, err := datadir.ReadIdentity(vfs.OS{}, cfg.Log.Dir); err == nil {
				t.Fatalf("byte %d is flipped, and the identity is %+v", i, id)
			}
		}
		if err := os.WriteFile(path, whole[:20], 0o600); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, cfg, path, "damaged")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, cfg, path, "missing")

		// The directory of a log without its snapshots, or with another server's.
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		foreign := used(t, diskConfig(t, raftlog.Kind(cfg.Log.Store)), 10, true)
		mixed := cfg
		mixed.Log.Dir = t.TempDir()
		mustRefuse(t, mixed, mixed.DataDir)
		mixed = cfg
		mixed.DataDir = foreign.DataDir
		mustRefuse(t, mixed)
		start(t, cfg) // the refused starts did no harm
	})
}

// TestForeignLog starts a server on entries of another cluster. The server stops while
// Raft leads and is about to read more entries. That must not crash the program.
func TestForeignLog(t *testing.T) {
	t.Parallel()
	eachDisk(t, "disk", func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		owner := r.attach(time.Hour)
		r.do(create(owner, "/a", 0))
		for range 200 { // each command has its own entry
			r.do(set(owner, "/a", nil))
		}
		r.close()
		id, _, err := datadir.ReadIdentity(vfs.OS{}, cfg.Log.Dir)
		if err != nil {
			t.Fatal(err)
		}
		id.Cluster = datadir.NewIdentity(1).Cluster
		if err := id.Write(vfs.OS{}, cfg.Log.Dir); err != nil {
			t.Fatal(err)
		}
		cfg.Handler = newRecorder()
		n, err := startNode(cfg)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err = <-n.Err():
		case <-time.After(patience):
		}
		if err == nil || !strings.Contains(err.Error(), id.Cluster) {
			t.Errorf("the server stops with: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestDamagedSnapshot flips a bit in the newest snapshot. If the log goes back far enough,
// the state is complete; otherwise the server doesn't start.
func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	eachDisk(t, "disk", func(t *testing.T, cfg Config) {
		used(t, cfg, 3, true)
		found, err := filepath.Glob(filepath.Join(cfg.DataDir, "snapshots", "*", "state.bin"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		flip(t, found[0])
		cut := cfg
		cut.Log.SnapTrailing = 1 // keep almost no log entries after the next snapshot
		r := start(t, cut)
		if !r.exists("/a") {
			t.Fatal("a server with a damaged snapshot has lost its state")
		}
		s := r.attach(time.Hour)
		for range 20 {
			r.do(set(s, "/a", nil))
		}
		if err := r.Snapshot(); err != nil {
			t.Fatal(err)
		}
		r.close()
		found, err = filepath.Glob(filepath.Join(cfg.DataDir, "snapshots", "*", "state.bin"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v", found, err)
		}
		for _, f := range found {
			flip(t, f)
		}
		mustRefuse(t, cfg, cfg.DataDir)
	})
}

func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotTrigger: the server writes snapshots unprompted and truncates the log, and
// a restart restores the whole state.
func TestSnapshotTrigger(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, cfg Config) {
		cfg.Log.SnapCount = 50
		r := start(t, cfg)
		s := r.attach(time.Hour)
		r.do(create(s, "/a", 0))
		for i := range 400 {
			r.do(set(s, "/a", fmt.Append(nil, i)))
		}
		eventually(t, "a snapshot", func() bool {
			list, err := r.replica.Stores().Snapshots().List()
			return err == nil && len(list) > 0 && list[0].Index > 200
		})
		before := r.dump()
		if cfg.Memory {
			eventually(t, "a short log", func() bool {
				first, err := r.replica.Stores().Logs().FirstIndex()
				return err == nil && (first > 200 || first == 0) // 0: the log is empty
			})
			return
		}
		r.close()
		r = start(t, cfg)
		if r.dump() != before {
			t.Fatal("the state after the restart is another one")
		}
	})
}

// eventually waits until cond returns true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	wait.Eventually(t, what, cond)
}

// TestSeed starts a server on a seeded state.
func TestSeed(t *testing.T) {
	t.Parallel()
	eachDisk(t, "disk", func(t *testing.T, cfg Config) {
		tr, tab := tree.New(), session.NewTable()
		s := tab.Create(1, 10_000, [16]byte{5})
		req := &proto.CreateRequest{Path: "/old", ACL: proto.OpenACL(), Flags: flagEphemeral}
		tr.Apply(&tree.Txn{Zxid: 0x1f4_0000_0007, Time: 5, Session: s.ID}, proto.OpCreate, req)
		tr.Advance(0x1f4_ffff_fff0)
		if err := cfg.Seed(tr, tab); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Seed(tr, tab); err == nil {
			t.Fatal("a directory was seeded twice")
		}
		r := start(t, cfg)
		if !r.exists("/old") || r.zxid() != 0x1f4_ffff_fff0 {
			t.Fatalf("zxid %#x", r.zxid())
		}
		o := r.reattach(s)
		if o.code != proto.Ok {
			t.Fatal(o.code)
		}
		var last outcome
		for i := range 40 {
			last = r.do(create(o.attached, fmt.Sprintf("/n%d", i), 0))
		}
		if last.zxid != 0x1f5_0000_0000+40-15 || r.Status().Epoch != 0x1f4 {
			t.Fatalf("zxid %#x, epoch %#x", last.zxid, r.Status().Epoch)
		}
		before := r.dump()
		r.close()
		r = start(t, cfg)
		if r.dump() != before || r.zxid() != last.zxid {
			t.Fatal("the state after the restart is another one")
		}
		mustRefuse(t, Config{ID: 1, Log: Log{Dir: cfg.Log.Dir}, DataDir: cfg.DataDir}, "")
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{ID: 256, Memory: true}, {ID: 1}, {ID: 1, Log: Log{Dir: "x"}},
		{ID: 1, Memory: true, TickTime: -1}, {ID: 1, Memory: true, Log: Log{SnapCount: -1}},
	} {
		mustRefuse(t, c)
	}
	if _, err := startNode(Config{ID: 1, Memory: true}); err == nil {
		t.Error("a server without a Handler starts")
	}
}

// TestDamagedLog flips bits in the files of a stopped server. The server starts with the
// state that it had, or not at all.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	eachDisk(t, "disk", func(t *testing.T, cfg Config) {
		used(t, cfg, 100, false)
		r := start(t, cfg)
		want := r.dump()
		r.close()
		started := 0
		for seed := range uint64(30) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			damaged := cfg
			dir := t.TempDir()
			damaged.Log.Dir, damaged.DataDir = dir+"/log", dir+"/snap"
			damageCopy(t, rnd, cfg.Log.Dir, damaged.Log.Dir)
			damaged.Handler = newRecorder()
			n, err := startNode(damaged)
			if err != nil {
				continue
			}
			started++
			r := &rig{Node: n, recorder: damaged.Handler.(*recorder), t: t}
			r.awaitReady()
			if r.dump() != want {
				t.Errorf("seed %d: the server starts with another state", seed)
			}
			r.close()
		}
		if started == 30 {
			t.Error("nothing was damaged")
		}
	})
}

// damageCopy copies a directory and flips a bit in one of its larger files.
func damageCopy(t *testing.T, rnd *rand.Rand, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	var files []string
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Size() > 1000 {
				files = append(files, path)
			}
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	path := files[rnd.IntN(len(files))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(b, "\x00"))
	b[rnd.IntN(used)] ^= 1 << rnd.IntN(8)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHalfBootstrapped starts a server after a power failure between the writes of the
// bootstrap term and of Raft's first configuration.
func TestHalfBootstrapped(t *testing.T) {
	t.Parallel()
	eachDisk(t, "disk", func(t *testing.T, cfg Config) {
		full := cfg
		full.open = func(c *replica.Config) (replica.Stores, error) {
			s, err := replica.OpenStores(c)
			if err != nil {
				return nil, err
			}
			return cutAfterTerm{s}, nil
		}
		full.Handler = newRecorder()
		if _, err := startNode(full); err == nil {
			t.Fatal("the server started without its first configuration")
		}
		r := start(t, cfg)
		s := r.attach(time.Hour)
		if o := r.do(create(s, "/a", 0)); o.code != proto.Ok {
			t.Fatal(o.code)
		}
	})
}

// cutAfterTerm are stores that accept a term but no entry.
type cutAfterTerm struct{ replica.Stores }

func (c cutAfterTerm) Logs() raft.LogStore { return noEntries{c.Stores.Logs()} }

type noEntries struct{ raft.LogStore }

func (noEntries) StoreLog(*raft.Log) error { return errors.New("the power is gone") }

// TestEmptiedDirectory: after its log was removed, a server refuses to start, instead of
// starting afresh under its old identity. ReadPlace reports the same.
func TestEmptiedDirectory(t *testing.T) {
	t.Parallel()
	eachDisk(t, "emptied", func(t *testing.T, cfg Config) {
		used(t, cfg, 3, false)
		parts, _ := raftlog.Parts()
		for _, name := range parts {
			if err := os.RemoveAll(filepath.Join(cfg.Log.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		mustRefuse(t, cfg, cfg.Log.Dir, datadir.IdentityFile, "is missing", "zkgo recover")
		p, err := cfg.ReadPlace()
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Files) != 1 || p.Files[0].Err == nil || !strings.Contains(p.Files[0].Err.Error(), datadir.IdentityFile) {
			t.Errorf("%+v", p)
		}
	})
}

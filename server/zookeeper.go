package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Imported says what came from ZooKeeper.
type Imported struct {
	*zkfiles.Report
	Znodes, Ephemerals, Sessions int
	Zxid                         int64 // that the server begins with: above all that ZooKeeper gave
}

// maxEpoch keeps zxids positive.
const maxEpoch = 1<<31 - 1

// Import makes the directories of a server that has none yet the continuation of
// a ZooKeeper whose files are src. Zxids, stats, lists, quotas, sessions and their
// ephemeral znodes stay; the epoch rises above everything that the files know
// of. In an ensemble, cfg is that of one server: it is the only one with a vote
// until the others, whose directories are empty, have joined.
func Import(cfg Config, src zkfiles.Source) (*Imported, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if cfg.Memory {
		return nil, errors.New("a server that forgets cannot be imported into")
	}
	// Seed finds out as well, but reading may take a while.
	if has, err := raftlog.HasState(cfg.FS, cfg.LogDir, cfg.DataDir); err != nil {
		return nil, err
	} else if has {
		return nil, fmt.Errorf("%s: %w", cfg.DataDir, raftfsm.ErrHasState)
	}
	src.Policy = cfg.policy() & tree.Emulate353TTL
	if src.Limits.MaxField == 0 {
		src.Limits.MaxField = cfg.maxField()
	}
	state, report, err := zkfiles.Load(src)
	if err != nil {
		return nil, err
	}
	t, sessions := tree.New(), session.NewTable()
	if err := state.Fill(t, sessions); err != nil {
		return nil, err
	}
	epoch := report.Epoch + 1
	if epoch > maxEpoch {
		return nil, fmt.Errorf("the epoch would be %d: there is none above %d", epoch, int64(maxEpoch))
	}
	t.Lock()
	forgetServers(&cfg, t)
	t.Advance(epoch << 32)
	err = t.Check()
	r := &Imported{Report: report, Znodes: t.NodeCount() - 1, Ephemerals: t.EphemeralCount(), Sessions: sessions.Len(), Zxid: t.LastZxid()}
	t.Unlock()
	if err != nil {
		return nil, err
	}
	return r, raftfsm.Seed(cfg.onDisk(), t, sessions)
}

// forgetServers empties the list of ZooKeeper's servers where no leader will
// replace it: clients that follow it would go there.
func forgetServers(cfg *Config, t *tree.Tree) {
	if cfg.distributed() || len(t.Get(tree.ConfigPath).Data()) == 0 {
		return
	}
	t.SetConfig(&tree.Txn{Zxid: t.LastZxid(), Time: cfg.Now().UnixMilli()}, nil, 0)
}

// Exported says what ZooKeeper can begin with.
type Exported struct {
	Snapshot         string // path
	Zxid             int64
	Znodes, Sessions int
	HasTTL           bool // ZooKeeper must run with extendedTypesEnabled=true, or it deletes some
}

// ExportToZooKeeper writes the state in the directories of a server that does
// not run into the empty data directory dir of a ZooKeeper. A stop at any moment
// leaves no snapshot there, or a whole one.
func ExportToZooKeeper(cfg Config, dir string, c zkfiles.Compression) (*Exported, error) {
	cfg = cfg.withDefaults()
	files := filepath.Join(dir, "version-2")
	entries, err := os.ReadDir(files)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty", files)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	t, sessions, _, err := raftfsm.Load(cfg.onDisk())
	if err != nil {
		return nil, err
	}
	r := &Exported{Zxid: t.LastZxid(), Znodes: t.NodeCount() - 1, Sessions: sessions.Len(), HasTTL: t.HasTTL()}
	if err := os.MkdirAll(files, 0o750); err != nil {
		return nil, err
	}
	r.Snapshot = filepath.Join(files, zkfiles.SnapshotName(r.Zxid, c))
	if err := writeForZooKeeper(r.Snapshot, t, sessions, c); err != nil {
		return nil, err
	}
	// A server of an ensemble compares them with the zxid, and makes them where
	// they are missing; one that stands alone does not look.
	epoch := strconv.FormatInt(r.Zxid>>32, 10)
	for _, name := range []string{"currentEpoch", "acceptedEpoch"} {
		if err := vfs.ReplaceFile(vfs.OS{}, filepath.Join(files, name), []byte(epoch), 0o640); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// writeForZooKeeper writes a snapshot file, whole or not at all.
func writeForZooKeeper(path string, t *tree.Tree, sessions *session.Table, c zkfiles.Compression) (err error) {
	t.Lock()
	snap := t.Snapshot()
	t.Unlock()
	defer snap.Release()
	temp := filepath.Join(filepath.Dir(path), "unfinished")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	err = zkfiles.WriteSnapshot(f, snap, sessions, c)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return vfs.OS{}.SyncDir(filepath.Dir(path))
}

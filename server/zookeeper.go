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

// Imported describes what was imported from ZooKeeper.
type Imported struct {
	*zkfiles.Report
	Znodes, Ephemerals, Sessions int
	Zxid                         int64 // where the server begins: above every zxid that ZooKeeper assigned
}

// maxEpoch keeps zxids positive.
const maxEpoch = 1<<31 - 1

// Import turns the directories of a server without a state into the continuation of a
// ZooKeeper whose files are src. It keeps zxids, stats, lists, quotas, sessions and
// their ephemeral znodes; the epoch rises above any in the files. In an ensemble, cfg
// is the configuration of one server. That server has the only vote until the others,
// with empty directories, have joined.
func Import(cfg Config, src zkfiles.Source) (*Imported, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if cfg.Memory {
		return nil, errors.New("a server that forgets cannot be imported into")
	}
	// Seed checks this too, but reading may take a while.
	if has, err := raftlog.HasState(cfg.Env.FS, cfg.Log.Dir, cfg.DataDir); err != nil {
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

// forgetServers empties the list of ZooKeeper's servers if no leader will replace it:
// clients that follow the list would connect to those servers.
func forgetServers(cfg *Config, t *tree.Tree) {
	if cfg.distributed() || len(t.Get(tree.ConfigPath).Data()) == 0 {
		return
	}
	t.SetConfig(&tree.Txn{Zxid: t.LastZxid(), Time: cfg.Env.Now().UnixMilli()}, nil, 0)
}

// Exported describes what a ZooKeeper can start from.
type Exported struct {
	Snapshot         string // path
	Zxid             int64
	Znodes, Sessions int
	HasTTL           bool // ZooKeeper must run with extendedTypesEnabled=true, or it deletes some znodes
}

// ExportToZooKeeper writes the state of a stopped server into the empty data directory
// dir of a ZooKeeper. An interruption at any moment leaves either no snapshot there, or
// a complete one.
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
	// A server of an ensemble compares these files with the zxid, and creates them if
	// they are missing; a standalone server ignores them.
	epoch := strconv.FormatInt(r.Zxid>>32, 10)
	for _, name := range []string{"currentEpoch", "acceptedEpoch"} {
		if err := vfs.ReplaceFile(vfs.OS{}, filepath.Join(files, name), []byte(epoch), 0o640); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// writeForZooKeeper writes a snapshot file, complete or not at all.
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

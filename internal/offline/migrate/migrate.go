// Package migrate converts the files of a ZooKeeper server to the state of a zkgo server,
// and back. The server must not run in the meantime. It also converts a state that a running
// ensemble has sent (package mirror).
//
// May import: of this module server, raftfsm, session, tree, internal/defaults,
// internal/raftlog, internal/vfs and internal/offline/zkfiles.
package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Imported describes an import from ZooKeeper.
type Imported struct {
	*zkfiles.Report
	Znodes, Ephemerals, Sessions int
	Zxid                         int64 // where the server begins: above every zxid that ZooKeeper assigned
}

// maxEpoch keeps zxids positive.
const maxEpoch = 1<<31 - 1

// Import initializes the directories of a new server with the state of a ZooKeeper server, whose
// files are src. We keep zxids, stats, ACLs, quotas, sessions and their ephemeral znodes, and raise
// the epoch above any in the files. In an ensemble, cfg is the configuration of one server. That
// server has the only vote until the others, with empty directories, have joined.
func Import(cfg server.Config, src zkfiles.Source) (*Imported, error) {
	// Plant checks this too, but we check early because reading may be slow.
	dirs, err := emptyDirs(&cfg)
	if err != nil {
		return nil, err
	}
	src.Policy = dirs.Policy & tree.Emulate353TTL
	if src.Limits.MaxField == 0 {
		src.Limits.MaxField = MaxField(&cfg)
	}
	state, report, err := zkfiles.Load(src)
	if err != nil {
		return nil, err
	}
	r, err := Plant(cfg, state, report.Epoch)
	if err != nil {
		return nil, err
	}
	r.Report = report
	return r, nil
}

// MaxField returns the maximum length of a field in bytes, as a server with this
// configuration reads it.
func MaxField(cfg *server.Config) int {
	return 2 * cmp.Or(cfg.Limits.JuteMaxBuffer, defaults.JuteMaxBuffer)
}

// emptyDirs returns the directories of a server without a state.
func emptyDirs(cfg *server.Config) (raftfsm.Config, error) {
	dirs, err := cfg.Offline()
	if err != nil {
		return dirs, err
	}
	if dirs.Memory {
		return dirs, errors.New("cannot import into a server without a data directory")
	}
	if has, err := raftlog.HasState(dirs.FS, dirs.Log.Dir, dirs.DataDir); err != nil {
		return dirs, err
	} else if has {
		return dirs, fmt.Errorf("%s: %w", cfg.DataDir, raftfsm.ErrHasState)
	}
	return dirs, nil
}

// Plant initializes the directories of a new server with state, which it consumes. epoch is
// ZooKeeper's newest epoch. The result has no Report.
func Plant(cfg server.Config, state *zkfiles.State, epoch int64) (*Imported, error) {
	dirs, err := emptyDirs(&cfg)
	if err != nil {
		return nil, err
	}
	t, sessions := tree.New(), session.NewTable()
	if err := state.Fill(t, sessions); err != nil {
		return nil, err
	}
	if epoch = max(epoch, t.LastZxid()>>32) + 1; epoch > maxEpoch {
		return nil, fmt.Errorf("the epoch would be %d: there is none above %d", epoch, int64(maxEpoch))
	}
	t.Lock()
	forgetServers(&cfg, t, dirs.Now())
	t.Advance(epoch << 32)
	err = t.Check()
	r := &Imported{Znodes: t.NodeCount() - 1, Ephemerals: t.EphemeralCount(), Sessions: sessions.Len(), Zxid: t.LastZxid()}
	t.Unlock()
	if err != nil {
		return nil, err
	}
	return r, dirs.Seed(t, sessions)
}

// forgetServers empties the list of ZooKeeper's servers if no leader will replace it. If we
// kept it, clients that follow the list would connect to those servers.
func forgetServers(cfg *server.Config, t *tree.Tree, now time.Time) {
	if cfg.Quorum.Ensemble || len(cfg.Quorum.Members) > 1 || len(t.Get(tree.ConfigPath).Data()) == 0 {
		return
	}
	t.SetConfig(&tree.Txn{Zxid: t.LastZxid(), Time: now.UnixMilli()}, nil, 0)
}

// Exported describes the state from which a ZooKeeper server can start.
type Exported struct {
	Snapshot         string // path
	Zxid             int64
	Znodes, Sessions int
	HasTTL           bool // ZooKeeper must run with extendedTypesEnabled=true, or it deletes some znodes
}

// Export writes the state of a stopped server into dir, the empty data directory of a
// ZooKeeper server. If it is interrupted at any time, dir contains either no snapshot or a
// complete one.
func Export(cfg server.Config, dir string, c zkfiles.Compression) (*Exported, error) {
	offline, err := cfg.Offline()
	if err != nil {
		return nil, err
	}
	if err := CheckEmpty(dir); err != nil {
		return nil, err
	}
	t, sessions, _, err := offline.Load()
	if err != nil {
		return nil, err
	}
	r := &Exported{Zxid: t.LastZxid(), Znodes: t.NodeCount() - 1, Sessions: sessions.Len(), HasTTL: t.HasTTL()}
	r.Snapshot, _, err = writeData(dir, c, func(w io.Writer) (int64, error) {
		t.Lock()
		snap := t.Snapshot()
		t.Unlock()
		defer snap.Release()
		return r.Zxid, zkfiles.WriteSnapshot(w, snap, sessions, c)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// CheckEmpty returns an error if dir contains data of a ZooKeeper server.
func CheckEmpty(dir string) error {
	files := filepath.Join(dir, "version-2")
	entries, err := os.ReadDir(files)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s is not empty", files)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// WriteData makes dir, which must be empty, the data directory of a ZooKeeper server. write
// writes the snapshot, without compression, and returns its zxid. If it is interrupted at any
// time, dir contains either no snapshot or a complete one.
func WriteData(dir string, write func(io.Writer) (zxid int64, err error)) (snapshot string, zxid int64, err error) {
	if err := CheckEmpty(dir); err != nil {
		return "", 0, err
	}
	return writeData(dir, zkfiles.None, write)
}

func writeData(dir string, c zkfiles.Compression, write func(io.Writer) (int64, error)) (snapshot string, zxid int64, err error) {
	files := filepath.Join(dir, "version-2")
	if err := os.MkdirAll(files, 0o750); err != nil {
		return "", 0, err
	}
	temp := filepath.Join(files, "unfinished")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return "", 0, err
	}
	zxid, err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", 0, errors.Join(err, os.Remove(temp))
	}
	// A server of an ensemble compares these files with the zxid, and creates them if
	// they are missing; a standalone server ignores them.
	epoch := strconv.FormatInt(zxid>>32, 10)
	for _, name := range []string{"currentEpoch", "acceptedEpoch"} {
		if err := vfs.ReplaceFile(vfs.OS{}, filepath.Join(files, name), []byte(epoch), 0o640); err != nil {
			return "", 0, err
		}
	}
	snapshot = filepath.Join(files, zkfiles.SnapshotName(zxid, c))
	if err := os.Rename(temp, snapshot); err != nil {
		return "", 0, err
	}
	return snapshot, zxid, vfs.OS{}.SyncDir(files)
}

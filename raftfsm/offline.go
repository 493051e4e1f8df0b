package raftfsm

import (
	"math"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/logreader"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Operations on the directories of a stopped server.

// Position describes how far the state in a server's directories reaches.
type Position = datadir.Position

// Recovery is the result of a recovery.
type Recovery = replica.Recovery

// offline returns the configuration of the replica in the directories of cfg.
func (cfg Config) offline() (replica.Config, error) {
	cfg, err := cfg.withDefaults()
	return cfg.replica(), err
}

// Survey reads the directories of a stopped server. With a cfg.ID of 0, it accepts the
// directories of any server.
func (cfg Config) Survey() (Position, error) {
	own, err := cfg.offline()
	if err != nil {
		return Position{}, err
	}
	return replica.Survey(own)
}

// Load returns the state in the directories of a stopped server, e.g. for an export.
// Like Survey, it reads the whole log.
func (cfg Config) Load() (*tree.Tree, *session.Table, Position, error) {
	own, err := cfg.offline()
	if err != nil {
		return nil, nil, Position{}, err
	}
	return replica.Load(own)
}

// Recover makes the state in the directories of cfg, which belong to a stopped server,
// the beginning of a new ensemble with the members of cfg. This server has the only
// vote in it until other servers join. The epoch will be at least minEpoch. A stop at
// any moment leaves the directories unchanged, or the next process that opens them
// finishes the recovery.
func (cfg Config) Recover(minEpoch uint32) (Recovery, error) {
	own, err := cfg.offline()
	if err != nil {
		return Recovery{}, err
	}
	return replica.Recover(own, minEpoch, nil)
}

// Rejoin moves the state of a stopped server aside, so that the server joins the
// ensemble with the given id as a new member. It refuses a server that already belongs
// to that ensemble.
func (cfg Config) Rejoin(cluster string) (aside []string, err error) {
	own, err := cfg.offline()
	if err != nil {
		return nil, err
	}
	return datadir.Swap{Dirs: own.Dirs}.Rejoin(cluster, own.Now())
}

// Seed writes tree and sessions into the empty directories of cfg, as the state that a
// server starts with, e.g. for an import. It starts a new history, which no server of
// an older history accepts as its own. In an ensemble, only one server may be seeded.
// It has the only vote until other servers with empty directories have joined. The
// tree's zxid must be above everything that clients may have seen. A stop at any moment
// leaves the directories empty, or the next process that opens them finishes the work.
func (cfg Config) Seed(t *tree.Tree, s *session.Table) error {
	own, err := cfg.offline()
	if err == nil {
		_, err = replica.Seed(own, t, s, nil)
	}
	return err
}

// Restore is Seed for an older state, after which clients have seen later changes. The
// epoch rises far above the state's, and to at least minEpoch. All sessions end, as in a
// recovery from a lost quorum. The ids of new sessions start at the number from which
// ZooKeeper would start at that time. Some backups don't tell which ids were in use, and
// a client that has lost its session must not find another client's session under its id.
func (cfg Config) Restore(t *tree.Tree, s *session.Table, minEpoch uint32) (Recovery, error) {
	own, err := cfg.offline()
	if err != nil {
		return Recovery{}, err
	}
	return replica.Restore(own, t, s, minEpoch)
}

// DirNames names two directories in a message, or one if they are the same.
func DirNames(a, b string) string { return datadir.Dirs{Log: a, Snap: b}.String() }

// Place is the content of the files next to a log that describe the server that wrote it.
type Place = datadir.Place

// PlaceFile is one of the files that identify the owner of a directory's state.
type PlaceFile = datadir.PlaceFile

// ReadPlace checks the files that identify the owner of the state in cfg's log directory,
// separately and against the log and the snapshots. It only reads, and makes the same
// checks as the start of a server.
func (cfg Config) ReadPlace() (*Place, error) {
	cfg.Log.SetDefaults(cfg.DataDir)
	log, err := raftlog.LookAtLog(cfg.Log.Dir, cfg.Log.Bolt)
	if err != nil {
		return nil, err
	}
	snapshots, err := raftlog.SnapshotFiles(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	return datadir.ReadPlace(cfg.Log.Dir, &log, snapshots), nil
}

// State is the content of a snapshot.
type State = logreader.State

// Entry describes one log entry.
type Entry = logreader.Entry

// EntryType is the type of a log entry.
type EntryType = logreader.EntryType

// The types of log entries.
const (
	EntryLeader  = logreader.EntryLeader  // starts a leadership
	EntryBatch   = logreader.EntryBatch   // contains transactions
	EntryMembers = logreader.EntryMembers // Raft's list of servers
	EntryRaft    = logreader.EntryRaft    // internal to Raft, without effect
)

// Transaction is one command of a log.
type Transaction = logreader.Transaction

// ReadSnapshot verifies the snapshot in a directory and loads it.
func ReadSnapshot(dir string) (*State, error) { return logreader.ReadSnapshot(dir) }

// ReadLog calls each for the entries of the log in the directories of cfg, in order, and
// returns the state at its end. It stops at the first entry that it can't read. The state
// and the zxids are known from the oldest snapshot that the log continues, or from the
// beginning if the log starts there. Otherwise the returned state is nil. Without a log,
// the error is ErrNoState.
func (cfg Config) ReadLog(each func(*Entry) error) (*State, error) {
	return cfg.files().Read(math.MaxInt, each)
}

// ReadState is ReadLog with the newest snapshot only, for a caller that needs only the
// state.
func (cfg Config) ReadState() (*State, error) {
	return cfg.files().Read(1, func(*Entry) error { return nil })
}

func (cfg Config) files() logreader.Files {
	cfg.Log.SetDefaults(cfg.DataDir)
	return logreader.Files{LogDir: cfg.Log.Dir, SnapDir: cfg.DataDir, Bolt: cfg.Log.Bolt}
}

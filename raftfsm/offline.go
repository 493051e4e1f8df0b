package raftfsm

import (
	"math"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/logreader"
)

// Inspection of the files that servers leave on disk.

// Place is what the files next to a log say about the server that wrote it.
type Place = datadir.Place

// PlaceFile is one of the files that say which server's state a directory holds.
type PlaceFile = datadir.PlaceFile

// ReadPlace checks the files that say which server's state the log directory of cfg
// holds, each alone and against the log and the snapshots. It only reads, and applies the
// checks that a server makes when it starts.
func (cfg Config) ReadPlace() (*Place, error) {
	log, err := raftlog.LookAtLog(cfg.LogDir, cfg.Bolt)
	if err != nil {
		return nil, err
	}
	snapshots, err := raftlog.SnapshotFiles(cfg.SnapDir)
	if err != nil {
		return nil, err
	}
	return datadir.ReadPlace(cfg.LogDir, &log, snapshots), nil
}

// State is the content of a snapshot.
type State = logreader.State

// Entry describes one log entry.
type Entry = logreader.Entry

// EntryType is the type of a log entry.
type EntryType = logreader.EntryType

// The types of log entries.
const (
	EntryLeader  = logreader.EntryLeader  // begins a leadership
	EntryBatch   = logreader.EntryBatch   // holds transactions
	EntryMembers = logreader.EntryMembers // Raft's list of servers
	EntryRaft    = logreader.EntryRaft    // internal to Raft, without effect
)

// Transaction is one command of a log.
type Transaction = logreader.Transaction

// ReadSnapshot verifies the snapshot in a directory and loads it.
func ReadSnapshot(dir string) (*State, error) { return logreader.ReadSnapshot(dir) }

// ReadLog calls each for the entries of the log in the directories of cfg, in order, and
// returns the state at its end. It stops at the first entry that it can't read. The
// state, and with it the zxids, is known from the oldest snapshot that the log continues,
// or from the beginning if the log starts there. Without either, the returned state is
// nil. Without a log, the error is ErrNoState.
func ReadLog(cfg Config, each func(*Entry) error) (*State, error) {
	return cfg.files().Read(math.MaxInt, each)
}

// ReadState is ReadLog with the newest snapshot only, for a caller that wants no more
// than the state.
func ReadState(cfg Config) (*State, error) {
	return cfg.files().Read(1, func(*Entry) error { return nil })
}

func (c *Config) files() logreader.Files {
	return logreader.Files{LogDir: c.LogDir, SnapDir: c.SnapDir, Bolt: c.Bolt}
}

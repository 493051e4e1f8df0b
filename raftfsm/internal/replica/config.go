package replica

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tree"
)

// Config is the part of a server's configuration that its Replica needs. Every field is
// set, unless its comment says otherwise.
type Config struct {
	Server datadir.Server // the owner of the directories
	Level  uint32         // the highest behaviour level that this server knows
	Policy tree.Policy    // for the changes that Recover and Restore make

	Memory       bool         // keep everything in memory
	Dirs         datadir.Dirs // unless Memory is set
	Store        raftlog.Kind
	Bolt         storage.Format // for raftlog.Bolt; nil: not included
	SegmentBytes int            // in a file of a raftlog.WAL; 0: its default
	SnapCount    int            // transactions between snapshots
	SnapBytes    int64          // log bytes between snapshots
	SnapRetain   int            // snapshots kept
	SnapTrailing int            // entries kept in the log after a snapshot; 0: about trailingBytes

	ElectionTimeout time.Duration // of Raft, also for heartbeats
	Lease           time.Duration // how long a leader leads without hearing from a quorum

	Now     func() time.Time
	Wall    func() time.Time // stamped into snapshots
	Logger  *slog.Logger
	Open    func(*Config) (Stores, error) // OpenStores, except in tests
	Storing func(entries []*raft.Log)     // told the entries about to be stored; nil: not needed
}

package transport

import (
	"io"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

const (
	// defaultStall and defaultHeartbeatStall are the limits if Config sets none.
	defaultStall          = 1500 * time.Millisecond
	defaultHeartbeatStall = 500 * time.Millisecond
	// defaultMaxEntry bounds an entry unless Config says otherwise.
	defaultMaxEntry = 256 << 20
)

// Config configures a Transport.
type Config struct {
	Hub    *quorum.Hub
	ID     raft.ServerID
	Addr   string       // address of this server's quorum port, as the other servers dial it
	Logger hclog.Logger // for Raft's network layer; nil: silent

	// Stall limits the time without progress of a request. HeartbeatStall is the same for
	// requests that are answered immediately: heartbeats and vote requests. A connection
	// that exceeds the limit is replaced. Default 1.5 s and 500 ms.
	Stall, HeartbeatStall time.Duration

	// Applied returns the newest index passed to the state machine. A snapshot that
	// doesn't go beyond it is not installed. Nil: every snapshot is installed.
	Applied func() uint64
	// FirstIndex returns the index of the oldest entry in the log, 0 if it is empty. Nil:
	// the log still has its very first entry.
	FirstIndex func() uint64
	// Installing is called before Raft gets a snapshot, Installed after Raft has
	// installed one. Nil: not called.
	Installing, Installed func()
	// Acknowledged is called when a follower has stored entries, with the time since they
	// were sent. Joined is called when a follower stores its first entries in a
	// leadership. SendingSnapshot is called when a snapshot is sent, and the function
	// that it returns after that. Nil: not called.
	Acknowledged    func(id raft.ServerID, took time.Duration)
	Joined          func()
	SendingSnapshot func() (done func())
	// OpenSnapshot opens the newest snapshot of this server, to send it after a snapshot
	// didn't get through. Nil: Raft learns about every failure.
	OpenSnapshot func() (*raft.SnapshotMeta, io.ReadCloser, error)
	// Elsewhere returns more addresses of a server, for when the address in Raft's
	// configuration doesn't work. The handshake verifies the server. Nil: none.
	Elsewhere func(id raft.ServerID) []string
	// Hanging returns how long the oldest write to this server's log has been running, 0
	// if none is. Nil: unknown.
	Hanging func() time.Duration
	// Standing returns the state that messages are checked against before Raft sees them.
	// It must not wait. Nil: only the message itself is checked.
	Standing func() Standing
	// TermOf returns the term of an entry in the log, false if the log doesn't have it.
	// Nil: Raft alone handles entries that replace committed ones.
	TermOf func(index uint64) (term uint64, ok bool)
	// CheckEntry returns an error if an entry can't be stored or applied. Nil: all can.
	CheckEntry func(l *raft.Log) error
	// CheckSnapshot reads a snapshot sent to this server and returns an error if it can't
	// be restored. It may stop reading early. Nil: all can.
	CheckSnapshot func(q *raft.InstallSnapshotRequest, r io.Reader) error
	// MaxEntry bounds the data of an entry in bytes; default 256 MiB.
	MaxEntry int
	// Replays delivers messages more than once, for tests. Nil: every message arrives once.
	Replays *Replays
	// View returns the state that a server needs to find another leader after it has lost
	// its own. It must not wait for Close, Raft's main loop or the disk. If it is nil,
	// only the heartbeat timeout replaces a lost leader.
	View func() View
}

// View is a server's view of its ensemble at one moment.
type View struct {
	Leader    raft.ServerID // empty: no leader is known
	Candidate bool          // it is a candidate, or has just won the election
	Term      uint64        // Raft's current term: it grows with every vote that this server grants
	LastIndex uint64        // index of its last entry
	LastTerm  uint64        // term of its last entry
	Config    raft.Configuration
}

// Standing is a server's state, available without waiting.
type Standing struct {
	Committed uint64 // index of the newest entry known to be committed
	Leads     bool   // this server leads
	Term      uint64 // read after the other fields: all committed entries were committed in it or before
}

// orDefaults returns the configuration with defaults for unset fields.
func (c Config) orDefaults() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Stall == 0 {
		c.Stall = defaultStall
	}
	if c.HeartbeatStall == 0 {
		c.HeartbeatStall = defaultHeartbeatStall
	}
	if c.MaxEntry <= 0 {
		c.MaxEntry = defaultMaxEntry
	}
	return c
}

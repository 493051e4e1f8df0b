package apply

import (
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// ApplySlice is the number of commands after which apply releases the tree's lock, so that
// readers get a turn.
const ApplySlice = 128

// Machine is the state machine: the state, and the means of this server to apply the log. One
// goroutine of Raft calls Apply, Snapshot and Restore.
type Machine struct {
	State
	Environment
	Claims      Claims
	SnapCounter snapCounter

	// Arriving is the state transfer in progress, nil if there is none. It is never in a
	// snapshot, because there are no snapshots during a state transfer.
	Arriving *stateTransfer
	stopped  bool // set by stop: no more entries are applied
	// frozen: the Raft instance has installed a snapshot and is about to be replaced. The
	// next instance applies the entries after the snapshot again.
	frozen     bool
	freezeNext atomic.Bool // the next Restore is a snapshot from a leader: freeze after it
	installed  uint64      // index of the snapshot that the machine started from or received

	events []Event      // of the entry being applied
	batch  batchNumbers // of the entry being applied
	// Mirroring is the part of a mirror's data that isn't part of the state.
	Mirroring mirroring
	scratch
}

// Environment is the interface from a machine to its server.
type Environment struct {
	Newest   uint32 // behaviour level that this code knows
	Fleeting bool   // no server will ever read a snapshot
	Handler  Handler
	Local    *propose.LocalRuns // of this server; has the waiters
	Log      *slog.Logger
	Numbers  *Counters
	Hurry    <-chan struct{} // closed when the server stops: a snapshot no longer throttles itself

	Own          func(incarnation uint64) bool            // reports whether this server leads in it
	BatchApplied func(incarnation, seq uint64)            // called for every applied batch of this leader
	Applied      func(index uint64)                       // called for every applied entry
	Post         func([]Event)                            // sends to the control goroutine; doesn't block
	Written      func(zxid, bytes int64)                  // called for every durable snapshot
	Settled      func(id uint64, o Restored)              // called when a state transfer ends
	Fail         func(error)                              // reports the error that stopped the machine
	Evidence     func(write func(io.Writer) error) string // stores the dump, and returns where
	Stream       Stream                                   // of the transactions; nil: no server wants them
	// Configured is called for every change of Raft's configuration.
	Configured func(index uint64, conf raft.Configuration)
}

// Handler is the part of Handler that a machine calls.
type Handler interface {
	Applied(a *command.Applied)
	BatchDone()
	Jumped()
}

// New returns a machine without state. A snapshot is due after about ops transactions
// or the given number of bytes.
func New(env Environment, ops int, bytes int64) *Machine {
	m := &Machine{State: State{Tree: tree.New(), Sessions: session.NewTable()}, Environment: env}
	m.SnapCounter = snapCounter{maxOps: ops, maxBytes: bytes, trigger: make(chan struct{}, 1)}
	m.SnapCounter.reset()
	m.Mirroring.m = m
	m.rec = recorder{to: env.Stream, tree: m.Tree, tx: &m.tx}
	return m
}

// scratch is memory that apply reuses.
type scratch struct {
	cmd      command.Command
	next     command.Command // a command after cmd: see prefetch
	paths    []string        // used by prefetch
	tx       tree.Txn
	out      command.Applied
	attached session.Session
	waiters  []command.Waiter
	requests proto.Requests
	reap     tree.Reap
	rec      recorder
}

var _ raft.FSM = (*Machine)(nil)
var _ raft.ConfigurationStore = (*Machine)(nil)

// Apply applies one entry.
func (m *Machine) Apply(l *raft.Log) any {
	if m.stopped || m.frozen {
		return nil
	}
	begin := time.Now()
	m.batch = batchNumbers{}
	if err := m.ApplyEntry(l.Index, l.Data); err != nil {
		m.stop(fmt.Errorf("applying log entry %d: %w", l.Index, err))
	}
	m.Numbers.applied(l, &m.batch, begin)
	return nil
}

// StoreConfiguration records a change of Raft's configuration. Because the machine has
// this method, Raft can also make a snapshot if the newest entry is a configuration.
func (m *Machine) StoreConfiguration(index uint64, conf raft.Configuration) {
	if m.stopped || m.frozen {
		return
	}
	m.Index = index
	m.Configured(index, conf)
	m.Applied(index)
}

// stop stops the machine: an entry that can't be applied must not be skipped.
func (m *Machine) stop(err error) {
	m.stopped = true
	m.Fail(err)
}

// ApplyEntry applies the entry at index.
func (m *Machine) ApplyEntry(index uint64, data []byte) error {
	kind, err := command.EntryKind(data)
	if err != nil {
		return err
	}
	if kind == command.EntryLeaderStart {
		err = m.applyLeaderStart(data)
	} else {
		err = m.applyBatch(data)
	}
	if err != nil {
		return err
	}
	m.Index = index
	m.Claims.note(index, &m.State)
	if len(m.events) > 0 {
		m.Post(m.events)
		m.events = m.events[:0]
	}
	m.Applied(index)
	m.SnapCounter.bytes += int64(len(data))
	if m.Arriving == nil {
		m.SnapCounter.poke()
	}
	return nil
}

// applyLeaderStart starts an incarnation.
func (m *Machine) applyLeaderStart(data []byte) error {
	var s command.LeaderStart
	if err := s.Decode(data); err != nil {
		return err
	}
	switch {
	case s.Level > m.Newest:
		return m.tooNew(s.Level)
	case m.Cluster != (command.ClusterID{}) && s.Cluster != m.Cluster:
		return fmt.Errorf("it belongs to cluster %x, the state to cluster %x", s.Cluster, m.Cluster)
	}
	m.Tree.Lock()
	defer m.Tree.Unlock()
	m.drop(errRestoreLeader)
	m.Mirroring.giveUp()
	m.Cluster = s.Cluster
	m.Level = max(m.Level, s.Level)
	m.Incarnation, m.Seq = s.Incarnation, 0
	if s.Flags&command.FlagConfig != 0 {
		m.Config = append([]byte(nil), s.Config...)
	}
	switch {
	case m.Mirror.Phase == mirrored.Following: // the other ensemble determines zxids and the list of servers
	case s.Flags&command.FlagStandalone == 0:
		zxid := (m.Tree.LastZxid()>>32 + 1) << 32
		m.tx = tree.Txn{Zxid: zxid, Time: s.Time, Policy: s.Policy, Record: m.rec.recording()}
		if m.Config != nil {
			if err := m.establish(zxid, m.tx.Policy); err != nil {
				return err
			}
			m.installConfig()
		} else {
			m.Tree.Advance(zxid)
			m.rec.nothing(proto.Ok)
		}
	case m.Config != nil && s.Flags&command.FlagConfig == 0:
		m.dissolve(&s)
	}
	m.events = append(m.events, Event{Kind: Started, Server: uint64(s.Server), Incarnation: s.Incarnation})
	if m.Own(s.Incarnation) {
		for row := range m.Sessions.All {
			m.events = append(m.events, attachedEvent(row))
		}
	}
	return nil
}

// applyBatch applies the commands of a batch if it is the next one of the incarnation.
func (m *Machine) applyBatch(data []byte) error {
	var h command.BatchHeader
	runs, err := h.Decode(data)
	if err != nil {
		return err
	}
	// Check before skipping: a skipped batch also makes a correct claim about earlier
	// entries, and this server may be skipping it because its own state has diverged.
	if err := m.Claims.compare(h.Check); err != nil {
		return m.diverged(err)
	}
	if h.Incarnation != m.Incarnation || h.Seq != m.Seq+1 {
		m.Log.Info("skipping a batch of a former leader", "incarnation", h.Incarnation, "seq", h.Seq, "want", m.Seq+1)
		return nil
	}
	m.Seq = h.Seq
	m.dropLate(h.Time)
	m.batch.own, m.batch.made = m.Own(h.Incarnation), h.Time
	m.tx = tree.Txn{Time: h.Time, Policy: h.Policy}
	for len(runs) > 0 {
		var r command.RunHeader
		var commands []byte
		if commands, runs, err = r.Decode(runs); err != nil {
			return err
		}
		if err = m.applyRun(&r, commands); err != nil {
			return err
		}
		m.batch.ops += int(r.Count)
	}
	m.Handler.BatchDone()
	if m.batch.own {
		m.BatchApplied(h.Incarnation, h.Seq)
	}
	return nil
}

// applyRun applies the commands of one server, applySlice at a time.
func (m *Machine) applyRun(r *command.RunHeader, b []byte) error {
	num, left := r.First, int(r.Count)
	local := r.Server == m.Local.Server && r.Nonce == m.Local.Nonce
	var err error
	for left > 0 {
		n := min(left, ApplySlice)
		m.waiters = m.waiters[:0]
		if local {
			m.waiters = m.Local.Applied(m.waiters, num, n)
		}
		if b, err = m.applyCommands(r.Server, b, n); err != nil {
			return err
		}
		num += uint64(n)
		left -= n
	}
	clear(m.waiters)
	if len(b) != 0 {
		return fmt.Errorf("%d bytes after the %d commands of a run", len(b), r.Count)
	}
	return nil
}

// applyCommands applies the n commands at the start of b under the tree's lock and returns
// the bytes after them. The lock is released only between transactions.
func (m *Machine) applyCommands(server uint8, b []byte, n int) (rest []byte, err error) {
	m.Tree.Lock()
	defer m.Tree.Unlock()
	ahead := 0
	for i := range n {
		if i == ahead {
			ahead += m.scratch.prefetch(m.Tree, b, n-i)
		}
		if b, err = m.cmd.Decode(b); err != nil {
			return nil, err
		}
		m.cmd.Waiter = nil
		if i < len(m.waiters) {
			m.cmd.Waiter = m.waiters[i]
		}
		if err := m.applyCommand(server, &m.cmd); err != nil {
			return nil, fmt.Errorf("%v of session 0x%x: %w", m.cmd.Kind, m.cmd.Session, err)
		}
	}
	m.SnapCounter.ops += n
	return b, nil
}

// NextZxid returns the zxid after z. When the counter overflows, the next epoch starts,
// as after an election.
func NextZxid(z int64) int64 {
	if uint32(z) == 0xffffffff {
		return (z>>32+1)<<32 | 1
	}
	return z + 1
}

// begin starts a transaction with the next zxid.
func (m *Machine) begin(c *command.Command) *tree.Txn {
	m.tx.Zxid = NextZxid(m.Tree.LastZxid())
	m.tx.Session = c.Session
	m.tx.IDs, m.tx.Prints = c.IDs, c.Prints
	m.tx.Record = m.rec.recording()
	return &m.tx
}

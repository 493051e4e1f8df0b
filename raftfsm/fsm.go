package raftfsm

import (
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// applySlice is the number of commands after which apply releases the tree's lock, so that
// readers get a turn.
const applySlice = 128

// machine is the state machine: the state that the log determines, and what this server
// needs to apply the log. One goroutine of Raft calls Apply, Snapshot and Restore.
// Readers of tree and sessions hold the tree's lock.
type machine struct {
	tree     *tree.Tree
	sessions *session.Table

	// State in addition to tree and sessions. The tree holds the zxid and thus the epoch.
	incarnation uint64            // of the newest LeaderStart
	seq         uint64            // of the newest batch of that incarnation
	level       uint32            // behaviour level of the log: every server of the ensemble knows it
	cluster     command.ClusterID // zero until the first LeaderStart
	config      []byte            // the membership (membership.List.State), nil in a standalone server

	// Derived and local data.
	newest      uint32 // behaviour level that this code knows
	index       uint64 // newest entry applied
	rows        uint64 // xor of rowDigest over the sessions
	digests     digestRing
	claim       atomic.Pointer[command.Check]
	snapCounter snapCounter

	// arriving is the restore in progress, nil if there is none. It is never in a
	// snapshot: no snapshot is taken during a restore.
	arriving *arrival

	handler  Handler
	intake   *propose.Intake // of this server; holds the waiters
	own      func(incarnation uint64) bool
	landed   func(incarnation, seq uint64)            // called for every applied batch of this leader
	post     func([]event)                            // sends to the control goroutine; doesn't block
	fail     func(error)                              // reports the error that stopped the machine
	evidence func(write func(io.Writer) error) string // stores the dump, and returns where
	log      *slog.Logger
	hurry    <-chan struct{} // closed when the server stops: a snapshot no longer throttles itself
	stopped  bool            // set by stop: no more entries are applied
	// fleeting: no server will ever read a snapshot.
	fleeting bool
	// frozen: the Raft instance has installed a snapshot and is about to be replaced. The
	// next instance applies the entries after the snapshot again.
	frozen     bool
	freezeNext atomic.Bool             // the next Restore is a snapshot from a leader: freeze after it
	applied    func(index uint64)      // called for every applied entry
	written    func(zxid, bytes int64) // called for every durable snapshot

	settled func(id uint64, o restored) // called when a restore ends

	// configured is called for every change of Raft's configuration.
	configured func(index uint64, conf raft.Configuration)

	events []event // of the entry being applied

	numbers Numbers
	batch   batchNumbers // of the entry being applied
	scratch
}

// scratch is memory that apply reuses.
type scratch struct {
	cmd      command.Command
	next     command.Command // a command after cmd: see lookAhead
	paths    []string        // used by lookAhead
	tx       tree.Txn
	out      Applied
	attached session.Session
	waiters  []command.Waiter
	requests proto.Requests
	reap     tree.Reap
}

var _ raft.FSM = (*machine)(nil)
var _ raft.ConfigurationStore = (*machine)(nil)

// Apply applies one entry.
func (m *machine) Apply(l *raft.Log) any {
	if m.stopped || m.frozen {
		return nil
	}
	begin := time.Now()
	m.batch = batchNumbers{}
	if err := m.apply(l.Index, l.Data); err != nil {
		m.stop(fmt.Errorf("applying log entry %d: %w", l.Index, err))
	}
	m.numbers.applied(l, &m.batch, begin)
	return nil
}

// StoreConfiguration records a change of Raft's configuration. Because the machine has
// this method, Raft can also take a snapshot if the newest entry is a configuration.
func (m *machine) StoreConfiguration(index uint64, conf raft.Configuration) {
	if m.stopped || m.frozen {
		return
	}
	m.index = index
	m.configured(index, conf)
	m.applied(index)
}

// stop stops the machine: an entry that can't be applied must not be skipped.
func (m *machine) stop(err error) {
	m.stopped = true
	m.fail(err)
}

func (m *machine) apply(index uint64, data []byte) error {
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
	m.index = index
	m.noteDigest(index)
	if len(m.events) > 0 {
		m.post(m.events)
		m.events = m.events[:0]
	}
	m.applied(index)
	m.snapCounter.bytes += int64(len(data))
	if m.arriving == nil {
		m.snapCounter.poke()
	}
	return nil
}

// applyLeaderStart begins an incarnation.
func (m *machine) applyLeaderStart(data []byte) error {
	var s command.LeaderStart
	if err := s.Decode(data); err != nil {
		return err
	}
	switch {
	case s.Level > m.newest:
		return m.tooNew(s.Level)
	case m.cluster != (command.ClusterID{}) && s.Cluster != m.cluster:
		return fmt.Errorf("it belongs to cluster %x, the state to cluster %x", s.Cluster, m.cluster)
	}
	m.tree.Lock()
	defer m.tree.Unlock()
	m.drop(errRestoreLeader)
	m.cluster = s.Cluster
	m.level = max(m.level, s.Level)
	m.incarnation, m.seq = s.Incarnation, 0
	if s.Flags&command.FlagConfig != 0 {
		m.config = append([]byte(nil), s.Config...)
	}
	if s.Flags&command.FlagStandalone == 0 {
		zxid := (m.tree.LastZxid()>>32 + 1) << 32
		m.tx = tree.Txn{Zxid: zxid, Time: s.Time, Policy: s.Policy}
		if m.config != nil {
			if err := m.establish(zxid); err != nil {
				return err
			}
			m.installConfig()
		} else {
			m.tree.Advance(zxid)
		}
	} else if m.config != nil && s.Flags&command.FlagConfig == 0 {
		m.dissolve(&s)
	}
	m.events = append(m.events, event{kind: evStarted, server: uint64(s.Server), incarnation: s.Incarnation})
	if m.own(s.Incarnation) {
		for row := range m.sessions.All {
			m.events = append(m.events, attachedEvent(row))
		}
	}
	return nil
}

// establish gives the first membership its version, as in ZooKeeper: the first zxid of the
// current leadership. If reconfig is disabled, the configuration files determine the
// membership, and the version stays 0.
func (m *machine) establish(zxid int64) error {
	if m.tx.Policy&tree.ReconfigEnabled == 0 {
		return nil
	}
	now, err := membership.ParseState(m.config)
	if err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	if now.Version == 0 {
		now.Version = uint64(zxid)
		m.config = now.State()
	}
	return nil
}

// dissolve removes the membership: the last member of an ensemble continues as a
// standalone server, whose configuration file names no others.
func (m *machine) dissolve(s *command.LeaderStart) {
	m.config = nil
	m.tx = tree.Txn{Zxid: nextZxid(m.tree.LastZxid()), Time: s.Time, Policy: s.Policy}
	m.tell(m.tree.SetConfig(&m.tx, nil, 0))
}

// installConfig writes the config text into its znode, as every new leader does. If the
// text changes, the watches on the znode fire.
func (m *machine) installConfig() {
	m.tell(m.tree.SetConfig(&m.tx, membership.ConfigText(m.config), -1))
}

// tell makes the handler fire the watches for a change of /zookeeper/config that no client
// asked for.
func (m *machine) tell(res *tree.Result) {
	if len(res.Events) > 0 {
		m.out = Applied{Kind: command.KindReconfigDone, Op: proto.OpReconfig}
		m.ran(res)
		m.handler.Applied(&m.out)
	}
}

// applyBatch applies the commands of a batch if it is the next one of the incarnation.
func (m *machine) applyBatch(data []byte) error {
	var h command.BatchHeader
	runs, err := h.Decode(data)
	if err != nil {
		return err
	}
	// Check before skipping: a skipped batch also makes a correct claim about earlier
	// entries, and this server may be skipping it because its own state has diverged.
	if err := m.digests.compare(h.Check); err != nil {
		return m.diverged(err)
	}
	if h.Incarnation != m.incarnation || h.Seq != m.seq+1 {
		m.log.Info("skipping a batch that a leader left behind", "incarnation", h.Incarnation, "seq", h.Seq, "want", m.seq+1)
		return nil
	}
	m.seq = h.Seq
	m.dropLate(h.Time)
	m.batch.own, m.batch.made = m.own(h.Incarnation), h.Time
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
	m.handler.BatchDone()
	if m.batch.own {
		m.landed(h.Incarnation, h.Seq)
	}
	return nil
}

// applyRun applies the commands of one server, applySlice at a time.
func (m *machine) applyRun(r *command.RunHeader, b []byte) error {
	num, left := r.First, int(r.Count)
	local := r.Server == m.intake.Server && r.Nonce == m.intake.Nonce
	var err error
	for left > 0 {
		n := min(left, applySlice)
		m.waiters = m.waiters[:0]
		if local {
			m.waiters = m.intake.Applied(m.waiters, num, n)
		}
		if b, err = m.applyCommands(r.Server, b, n); err != nil {
			return err
		}
		num += uint64(n)
		left -= n
	}
	clear(m.waiters)
	if len(b) != 0 {
		return fmt.Errorf("%d bytes behind the %d commands of a run", len(b), r.Count)
	}
	return nil
}

// applyCommands applies the n commands at the start of b under the tree's lock and returns
// the bytes after them. The lock is released only between transactions.
func (m *machine) applyCommands(server uint8, b []byte, n int) (rest []byte, err error) {
	m.tree.Lock()
	defer m.tree.Unlock()
	ahead := 0
	for i := range n {
		if i == ahead {
			ahead += m.lookAhead(b, n-i)
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
	m.snapCounter.ops += n
	return b, nil
}

// membership returns the membership (membership.List.State).
func (m *machine) membership() []byte {
	m.tree.RLock()
	defer m.tree.RUnlock()
	return m.config
}

// noteDigest remembers the digest of the state after an entry and publishes it for the
// next batches.
func (m *machine) noteDigest(index uint64) {
	m.tree.RLock()
	c := command.Check{Index: index, Digest: m.tree.FullDigest() ^ m.rows}
	m.tree.RUnlock()
	m.digests.note(c)
	m.claim.Store(&c)
}

// lastCheck returns the newest digest, for a leader to claim.
func (m *machine) lastCheck() command.Check {
	if c := m.claim.Load(); c != nil {
		return *c
	}
	return command.Check{}
}

// nextZxid returns the zxid after z. When the counter overflows, the next epoch begins, as
// after an election.
func nextZxid(z int64) int64 {
	if uint32(z) == 0xffffffff {
		return (z>>32+1)<<32 | 1
	}
	return z + 1
}

// begin starts a transaction with the next zxid.
func (m *machine) begin(c *command.Command) *tree.Txn {
	m.tx.Zxid = nextZxid(m.tree.LastZxid())
	m.tx.Session = c.Session
	m.tx.IDs, m.tx.Prints = c.IDs, c.Prints
	return &m.tx
}

package raftfsm

import (
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// applySlice is the number of commands after which apply lets readers get to
// the tree.
const applySlice = 128

// machine is the state machine: everything that the log decides, and what this
// server needs to apply it. Apply, Snapshot and Restore are called by one
// goroutine of Raft. Readers of tree and sessions hold the tree's lock.
type machine struct {
	tree     *tree.Tree
	sessions *session.Table

	// State beside tree and sessions; the zxid and with it the epoch is the
	// tree's.
	incarnation uint64    // of the newest leaderStart
	seq         uint64    // of the newest batch of that incarnation
	level       uint32    // behaviour that the log asks for: every server of the ensemble knows it
	cluster     clusterID // zero until the first leaderStart
	config      []byte    // the membership (membership.state), nil in a standalone server

	// Derived and local.
	newest      uint32 // behaviour level that this code knows
	index       uint64 // newest entry applied
	rows        uint64 // xor of rowDigest over the sessions
	digests     digestRing
	claim       atomic.Pointer[check]
	snapCounter snapCounter

	// arriving is the state that a restore brings, nil while there is none. It is
	// in no snapshot: while it is there, none is taken.
	arriving *arrival

	// await returns when an entry is on disk; nil: those that are applied are.
	await func(index uint64)

	handler  Handler
	intake   *intake // of this server: where the waiters are
	own      func(incarnation uint64) bool
	post     func([]event)                            // tells the control goroutine; does not block
	fail     func(error)                              // reports what stopped the machine
	evidence func(write func(io.Writer) error) string // keeps what is written, and says where
	log      *slog.Logger
	hurry    <-chan struct{} // closed when the server stops: a snapshot need not be polite any more
	stopped  bool            // after fail: nothing is applied any more
	// fleeting: neither this server nor another one will ever read a snapshot.
	fleeting bool
	// frozen: a snapshot was installed and the Raft instance that did it is
	// about to be replaced. The next one brings what follows the snapshot again.
	frozen     bool
	freezeNext atomic.Bool             // the next Restore comes from a leader: freeze after it
	applied    func(index uint64)      // told of everything applied
	written    func(zxid, bytes int64) // told of every snapshot that is durable

	settled func(id uint64, o restored) // told how a restore ended

	// configured is told of every change of Raft's configuration.
	configured func(index uint64, conf raft.Configuration)

	events []event // of the entry being applied

	numbers Numbers
	batch   batchNumbers // of the entry being applied
	scratch
}

// scratch is room that apply reuses.
type scratch struct {
	cmd      Command
	next     Command  // of those behind cmd: see lookAhead
	paths    []string // room for lookAhead
	tx       tree.Txn
	out      Applied
	attached session.Session
	waiters  []any
	requests
}

var _ raft.FSM = (*machine)(nil)
var _ raft.ConfigurationStore = (*machine)(nil)

// Apply applies one entry.
func (m *machine) Apply(l *raft.Log) any {
	if m.stopped || m.frozen {
		return nil
	}
	if m.await != nil {
		m.await(l.Index) // nobody hears of it before
	}
	begin := time.Now()
	m.batch = batchNumbers{}
	if err := m.apply(l.Index, l.Data); err != nil {
		m.stop(fmt.Errorf("applying log entry %d: %w", l.Index, err))
	}
	m.numbers.applied(l, &m.batch, begin)
	return nil
}

// StoreConfiguration notes that Raft's configuration changed. That the machine
// has it at all also lets Raft take a snapshot although the newest entry is one
// of these.
func (m *machine) StoreConfiguration(index uint64, conf raft.Configuration) {
	if m.stopped || m.frozen {
		return
	}
	m.index = index
	m.configured(index, conf)
	m.applied(index)
}

// stop ends the machine: an entry that cannot be applied must not be skipped.
func (m *machine) stop(err error) {
	m.stopped = true
	m.fail(err)
}

func (m *machine) apply(index uint64, data []byte) error {
	kind, err := entryKind(data)
	if err != nil {
		return err
	}
	if kind == entryLeaderStart {
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
	var s leaderStart
	if err := s.decode(data); err != nil {
		return err
	}
	switch {
	case s.level > m.newest:
		return m.tooNew(s.level)
	case m.cluster != (clusterID{}) && s.cluster != m.cluster:
		return fmt.Errorf("it belongs to cluster %x, the state to cluster %x", s.cluster, m.cluster)
	}
	m.tree.Lock()
	defer m.tree.Unlock()
	m.drop(errRestoreLeader)
	m.cluster = s.cluster
	m.level = max(m.level, s.level)
	m.incarnation, m.seq = s.incarnation, 0
	if s.flags&flagConfig != 0 {
		m.config = append([]byte(nil), s.config...)
	}
	if s.flags&flagStandalone == 0 {
		zxid := (m.tree.LastZxid()>>32 + 1) << 32
		m.tx = tree.Txn{Zxid: zxid, Time: s.time, Policy: s.policy}
		if m.config != nil {
			if err := m.establish(zxid); err != nil {
				return err
			}
			m.installConfig()
		} else {
			m.tree.Advance(zxid)
		}
	} else if m.config != nil && s.flags&flagConfig == 0 {
		m.dissolve(&s)
	}
	m.events = append(m.events, event{kind: evStarted, server: uint64(s.server), incarnation: s.incarnation})
	if m.own(s.incarnation) {
		for row := range m.sessions.All {
			m.events = append(m.events, attachedEvent(row))
		}
	}
	return nil
}

// establish gives the first membership its version where reconfig is allowed,
// as in ZooKeeper: the zxid of the leadership that it begins with. Without
// reconfig the configuration files have the say, and the version stays 0.
func (m *machine) establish(zxid int64) error {
	if m.tx.Policy&tree.ReconfigEnabled == 0 {
		return nil
	}
	now, err := parseState(m.config)
	if err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	if now.version == 0 {
		now.version = uint64(zxid)
		m.config = now.state()
	}
	return nil
}

// dissolve forgets the membership: the last member of an ensemble goes on
// alone, as a server whose configuration file names no others.
func (m *machine) dissolve(s *leaderStart) {
	m.config = nil
	m.tx = tree.Txn{Zxid: nextZxid(m.tree.LastZxid()), Time: s.time, Policy: s.policy}
	m.tell(m.tree.SetConfig(&m.tx, nil, 0))
}

// installConfig writes the config text into its znode, as every new leader
// does. Clients that watch it hear of it when it is another text.
func (m *machine) installConfig() {
	m.tell(m.tree.SetConfig(&m.tx, configText(m.config), -1))
}

// tell lets the handler fire the watches of a change of /zookeeper/config that
// no client asked for.
func (m *machine) tell(res *tree.Result) {
	if len(res.Events) > 0 {
		m.out = Applied{Kind: KindReconfigDone, Op: proto.OpReconfig}
		m.ran(res)
		m.handler.Applied(&m.out)
	}
}

// applyBatch applies the commands of a batch, if it is the next one.
func (m *machine) applyBatch(data []byte) error {
	var h batchHeader
	runs, err := h.decode(data)
	if err != nil {
		return err
	}
	// Also a batch that is skipped tells the truth about the entries before it, and
	// it may be skipped only because this server is not where the others are.
	if err := m.digests.compare(h.check); err != nil {
		return m.diverged(err)
	}
	if h.incarnation != m.incarnation || h.seq != m.seq+1 {
		m.log.Info("skipping a batch that a leader left behind", "incarnation", h.incarnation, "seq", h.seq, "want", m.seq+1)
		return nil
	}
	m.seq = h.seq
	m.dropLate(h.time)
	if m.batch.own, m.batch.made = m.own(h.incarnation), h.time; m.batch.own {
		m.intake.backlog.mark()
	}
	m.tx = tree.Txn{Time: h.time, Policy: h.policy}
	for len(runs) > 0 {
		var r runHeader
		var commands []byte
		if commands, runs, err = r.decode(runs); err != nil {
			return err
		}
		if err = m.applyRun(&r, commands); err != nil {
			return err
		}
		m.batch.ops += int(r.count)
	}
	m.handler.BatchDone()
	return nil
}

// applyRun applies the commands of one server, a slice at a time.
func (m *machine) applyRun(r *runHeader, b []byte) error {
	num, left := r.first, int(r.count)
	local := r.server == m.intake.server && r.nonce == m.intake.nonce
	var err error
	for left > 0 {
		n := min(left, applySlice)
		m.waiters = m.waiters[:0]
		if local {
			m.waiters = m.intake.applied(m.waiters, num, n)
		}
		if b, err = m.applyCommands(r.server, b, n); err != nil {
			return err
		}
		num += uint64(n)
		left -= n
	}
	clear(m.waiters)
	if len(b) != 0 {
		return fmt.Errorf("%d bytes behind the %d commands of a run", len(b), r.count)
	}
	return nil
}

// applyCommands applies the n commands at the start of b under the tree's lock
// and returns what follows them. The lock is given up only between
// transactions.
func (m *machine) applyCommands(server uint8, b []byte, n int) (rest []byte, err error) {
	m.tree.Lock()
	defer m.tree.Unlock()
	ahead := 0
	for i := range n {
		if i == ahead {
			ahead += m.lookAhead(b, n-i, i)
		}
		if b, err = m.cmd.decode(b); err != nil {
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

// noteDigest remembers the state after an entry and publishes it for the next
// batches.
func (m *machine) noteDigest(index uint64) {
	m.tree.RLock()
	c := check{index, m.tree.FullDigest() ^ m.rows}
	m.tree.RUnlock()
	m.digests.note(c)
	m.claim.Store(&c)
}

// lastCheck is the newest state for a leader to claim.
func (m *machine) lastCheck() check {
	if c := m.claim.Load(); c != nil {
		return *c
	}
	return check{}
}

// nextZxid returns the zxid after z. When the counter is full the epoch takes
// over, as after an election.
func nextZxid(z int64) int64 {
	if uint32(z) == 0xffffffff {
		return (z>>32+1)<<32 | 1
	}
	return z + 1
}

// begin opens a transaction: it gets the next zxid.
func (m *machine) begin(c *Command) *tree.Txn {
	m.tx.Zxid = nextZxid(m.tree.LastZxid())
	m.tx.Session = c.Session
	m.tx.IDs, m.tx.Prints = c.IDs, c.Prints
	return &m.tx
}

package ensemble

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/transport"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
)

// base is shared by all parts of an ensemble: the environment, the current Raft instance
// and leadership, and the information about other servers that follows from them.
//
// While mu is held, we call no function that waits or acquires another lock.
type base struct {
	env       *Environment
	self      membership.Member // as listed in this server's configuration file
	log       *slog.Logger
	hub       *quorum.Hub
	replays   *transport.Replays // for tests; nil: every message arrives once
	formation *bootstrap.Formation
	rhythm    Rhythm
	liveness  *session.Member

	ctx    context.Context // ends with settle
	cancel context.CancelFunc
	wg     sync.WaitGroup

	appliedIndex atomic.Uint64
	gone         atomic.Pointer[leadOf] // the leader that this server gave up, while Raft still names it; nil: none
	unreadable   atomic.Pointer[[]byte] // the membership that could not be read and was reported

	mu        sync.Mutex
	transport *transport.Transport // of the current Raft instance
	lead      *leading             // while this server's leadership is open
}

func (b *base) transportNow() *transport.Transport {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.transport
}

// handedOver returns the newest index that Raft passed to the state machine.
func (b *base) handedOver() uint64 {
	if r := b.env.RaftNow(); r != nil {
		return r.AppliedIndex()
	}
	return 0
}

// firstIndex returns the index of the oldest entry in the log.
func (b *base) firstIndex() uint64 {
	first, err := b.env.Stores().Logs().FirstIndex()
	if err != nil {
		return 0
	}
	return first
}

// hanging returns how long the current write to the log's disk has been waiting.
func (b *base) hanging() time.Duration { return b.env.Stores().Hanging() }

// view returns the state that the transport needs to detect a dead leader.
func (b *base) view() transport.View {
	r := b.env.RaftNow()
	if r == nil {
		return transport.View{}
	}
	leader := b.leaderID()
	state := r.State()
	if state == raft.Leader && b.unfollowed(r) {
		leader = "" // Raft's main loop waits for the disk, or it would have stepped down
	}
	v := transport.View{Leader: leader, Candidate: state == raft.Candidate || state == raft.Leader && leader == "",
		Term: r.CurrentTerm(), Config: r.GetConfiguration().Configuration()}
	v.LastIndex, v.LastTerm = lastEntry(r)
	return v
}

// lastEntry returns the index and term of the server's last entry, which may be in a
// snapshot only. It doesn't block.
func lastEntry(r *raft.Raft) (index, term uint64) {
	stats := r.Stats()
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(stats[key], 10, 64)
		if err != nil {
			return 0 // missing or not a number
		}
		return n
	}
	index, term = number("last_log_index"), number("last_log_term")
	if snapshot := number("last_snapshot_index"); snapshot > index {
		return snapshot, number("last_snapshot_term")
	}
	return index, term
}

// leaderID returns the server that this one considers the leader: Raft's leader, unless
// it was given up.
func (b *base) leaderID() raft.ServerID {
	r := b.env.RaftNow()
	if r == nil {
		return ""
	}
	_, id := r.LeaderWithID()
	if gone := b.gone.Load(); gone != nil && gone.server == id && gone.term == r.CurrentTerm() {
		return ""
	}
	return id
}

// unfollowed reports whether this leader had a quorum in this term but has not had one
// for longer than its lease.
func (b *base) unfollowed(r *raft.Raft) bool {
	trans := b.transportNow()
	if trans == nil {
		return false
	}
	contact := trans.Confirmed(r.CurrentTerm(), r.GetConfiguration().Configuration(), time.Now())
	return !contact.IsZero() && time.Since(contact) > b.env.Config.Timing().Lease
}

// leadNow returns the open leadership of this server, or nil.
func (b *base) leadNow() *leading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lead
}

// leadsBy returns the transport if this server leads, otherwise nil.
func (b *base) leadsBy() *transport.Transport {
	if !b.env.Leads() {
		return nil
	}
	return b.transportNow()
}

// leads returns the leader, for the reply to other servers. addr is empty if this server
// doesn't know the leader.
func (b *base) leads() (leading bool, leader uint64, addr string) {
	b.mu.Lock()
	leading = b.lead != nil
	b.mu.Unlock()
	if leading {
		return true, b.self.ID, b.ownAddr()
	}
	v := b.view()
	for _, s := range v.Config.Servers {
		if s.ID == v.Leader && v.Leader != "" {
			return false, membership.ServerOf(s.ID), string(s.Address)
		}
	}
	return false, membership.NoServer, ""
}

// standing returns the state that incoming Raft messages are checked against.
func (b *base) standing() transport.Standing {
	r := b.env.RaftNow()
	if r == nil {
		return transport.Standing{}
	}
	s := transport.Standing{Committed: r.CommitIndex(), Leads: r.State() == raft.Leader}
	s.Term = r.CurrentTerm()
	return s
}

// termOf returns the term of an entry in the log.
func (b *base) termOf(index uint64) (uint64, bool) {
	var l raft.Log
	if err := b.env.Stores().Logs().GetLog(index, &l); err != nil {
		return 0, false
	}
	return l.Term, true
}

// replicated returns the membership as of the newest entry applied.
func (b *base) replicated() *membership.List {
	text := b.env.Machine.Membership()
	if text == nil {
		return nil
	}
	m, err := membership.ParseState(text)
	if err != nil {
		if last := b.unreadable.Swap(&text); last == nil || !bytes.Equal(*last, text) {
			b.log.Error("the membership cannot be read", "err", err)
		}
		return nil
	}
	return m
}

// OwnLine returns this server's line in the membership, or nil while there is none.
func (b *base) OwnLine() *membership.Member {
	if m := b.replicated(); m != nil {
		return m.Member(b.self.ID)
	}
	return nil
}

// ownAddr returns the address at which the others dial this server.
func (b *base) ownAddr() string {
	if r := b.env.RaftNow(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.ID == b.env.Identity.RaftID && membership.Dialable(string(s.Address)) {
				return string(s.Address)
			}
		}
	}
	return b.self.QuorumAddr
}

// belongs reports whether a server that has proved to belong to this ensemble is still in
// Raft's configuration.
func (b *base) belongs(from quorum.Identity) bool {
	r := b.env.RaftNow()
	return r != nil && from.Cluster != (quorum.ClusterID{}) && slices.ContainsFunc(r.GetConfiguration().Configuration().Servers,
		func(s raft.Server) bool { return string(s.ID) == from.ServerID })
}

// inRaft reports whether Raft's configuration has a server, with or without a vote.
func (b *base) inRaft(id raft.ServerID) bool {
	return slices.ContainsFunc(b.env.RaftNow().GetConfiguration().Configuration().Servers,
		func(s raft.Server) bool { return s.ID == id })
}

// outside reports whether Raft's configuration lacks this server.
func (b *base) outside() bool { return !b.inRaft(b.env.Identity.RaftID) }

// hasVote reports whether this server is a voter in Raft's configuration.
func (b *base) hasVote() bool {
	return slices.ContainsFunc(b.env.RaftNow().GetConfiguration().Configuration().Servers,
		func(s raft.Server) bool { return s.ID == b.env.Identity.RaftID && s.Suffrage == raft.Voter })
}

// removed reports whether this server is no longer a member: Raft's configuration lacks
// it, or the applied membership does. Raft's configuration follows the membership when a
// server leaves, and precedes it when a server joins: then the server may have a vote
// already. Before Raft runs, removed returns false.
func (b *base) removed() bool {
	if b.env.RaftNow() == nil {
		return false
	}
	m := b.replicated()
	return b.outside() || m != nil && m.Member(b.env.Config.ID) == nil
}

// locate finds a server in Raft's configuration.
func (b *base) locate(server uint64) (raft.ServerID, string) {
	for _, s := range b.env.RaftNow().GetConfiguration().Configuration().Servers {
		if membership.ServerOf(s.ID) == server {
			return s.ID, string(s.Address)
		}
	}
	return "", ""
}

// knownMembers returns the members of the ensemble by id, from Raft's configuration or,
// before it exists, from the configuration file.
func (b *base) knownMembers() []membership.Member {
	var list []membership.Member
	if r := b.env.RaftNow(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			list = append(list, membership.Member{ID: membership.ServerOf(s.ID), QuorumAddr: string(s.Address), Observer: s.Suffrage != raft.Voter})
		}
	}
	if len(list) == 0 {
		list = slices.Clone(b.env.Config.Members)
	}
	slices.SortFunc(list, func(a, b membership.Member) int { return int(a.ID) - int(b.ID) })
	return list
}

// alive reports whether a server has answered this leader recently.
func (b *base) alive(id raft.ServerID) bool {
	if id == b.env.Identity.RaftID {
		return true
	}
	return time.Since(b.transportNow().Contact(b.env.RaftNow().CurrentTerm(), id)) < silentFor
}

package raftfsm

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// The methods of Node about its ensemble.

// Self returns this server's line in the membership, or in its configuration file while
// the membership lacks it.
func (n *Node) Self() Member {
	if m := n.peers.OwnLine(); m != nil {
		return *m
	}
	for _, m := range n.cfg.Members {
		if m.ID == n.cfg.ID {
			return m
		}
	}
	return Member{ID: n.cfg.ID}
}

// Transfer hands leadership to another server, e.g. before a planned stop. It does
// nothing on a server that doesn't lead or is standalone.
func (n *Node) Transfer(ctx context.Context) error { return n.peers.Transfer(ctx) }

// Membership returns the text of /zookeeper/config as the log has it, whatever a super
// user may have written into the znode. It returns nil on a standalone server and
// before the first leader.
func (n *Node) Membership() []byte {
	return membership.ConfigText(n.replica.Machine.Membership())
}

// Voters returns the servers that have a vote, as far as this server knows. A server
// that has just joined gets its vote when it has caught up.
func (n *Node) Voters() []uint64 {
	r := n.replica.Raft()
	if r == nil {
		return nil
	}
	var ids []uint64
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, membership.ServerOf(s.ID))
		}
	}
	return ids
}

// Confirmed returns the newest time at which a leader that could commit is known to
// have heard of this server's sessions. The caller must not answer a client when that
// is so long ago that its session may have expired.
func (n *Node) Confirmed() time.Time { return n.peers.Confirmed() }

// Fresh returns a time such that this server has applied everything that any server had
// acknowledged by then: a read that it answers now is no older. It is never after
// Confirmed. Safe for concurrent use.
func (n *Node) Fresh() time.Time { return n.peers.Fresh() }

// Electing reports whether this server hears from no leader, but a quorum of servers
// has answered it so recently that there may be a new leader soon. Safe for concurrent
// use.
func (n *Node) Electing() bool { return n.peers.Electing() }

// Barrier waits until this server has applied every write that any server had
// acknowledged before the call. It retries until ctx ends; without a leader it waits
// for one.
func (n *Node) Barrier(ctx context.Context) error { return n.peers.Barrier(ctx) }

// FileText returns a text of Membership in the form for this server's configuration file.
// If the file has a wildcard, e.g. 0.0.0.0, as this server's own host, FileText keeps it.
// A wildcard is an address to listen at, which other servers needn't know.
func (n *Node) FileText(text []byte) []byte {
	m, err := membership.Parse(text)
	i := slices.IndexFunc(n.cfg.Members, func(m membership.Member) bool { return m.ID == n.cfg.ID })
	if err != nil || i < 0 || membership.Dialable(n.cfg.Members[i].QuorumAddr) {
		return text
	}
	own := m.Member(n.cfg.ID)
	if own == nil || len(own.Alternates) > 0 {
		return text
	}
	host, _, _ := net.SplitHostPort(n.cfg.Members[i].QuorumAddr)
	for _, a := range []*string{&own.QuorumAddr, &own.ElectionAddr} {
		_, port, _ := net.SplitHostPort(*a)
		*a = net.JoinHostPort(host, port)
	}
	own.ConfigNodeTxt = ""
	return m.Text()
}

// FileWritten tells the Node that the configuration file now lists the members of text, a
// text of Membership.
func (n *Node) FileWritten(text []byte) error {
	m, err := membership.Parse(text)
	if err != nil {
		return err
	}
	n.peers.FileWritten(m)
	return nil
}

// FileDiffers returns the reconfig that would make the membership match this server's
// configuration file. It returns "" if they match, and on a standalone server.
func (n *Node) FileDiffers() string { return n.peers.FileDiffers() }

// Learner is the leader's view of another server.
type Learner = ensemble.Learner

// Learners returns the servers that follow this one. It returns none unless this server
// leads.
func (n *Node) Learners() []Learner { return n.peers.Learners() }

// CanReplace returns the reason why Replace would be refused now, if it is known.
func (n *Node) CanReplace() error { return n.replacing.Check() }

// Replace replaces the state of the ensemble, as described in internal/apply/statetransfer.go. It returns
// the zxid after this server has applied the new state. It consumes t and s, and ends
// the sessions in s. The error tells whether nothing was changed or whether that is
// unknown. If ctx ends before the last piece is in flight, nothing is changed.
func (n *Node) Replace(ctx context.Context, t *tree.Tree, s *session.Table) (zxid int64, err error) {
	return n.replacing.Replace(ctx, t, s)
}

// UntilNext returns the time until the next moment at which a task that runs every d should
// run. Tasks of the same d run at the same moments, together with the node's own. Then an
// idle process wakes less often.
func (n *Node) UntilNext(d time.Duration) time.Duration { return n.rhythm.Next(d) }

// ProposalSizes are the sizes in bytes of the log entries that this server has proposed,
// −1 before the first one, and the number of commands in these entries.
type ProposalSizes = propose.Sizes

// ProposalSizes returns the sizes so far.
func (n *Node) ProposalSizes() ProposalSizes { return n.proposed.Get() }

// Level returns the behaviour level that the log has reached, and the highest one that
// this server knows. They differ while a server of the ensemble still runs an older
// version.
func (n *Node) Level() (now, newest uint32) {
	return n.replica.Machine.Levels()
}

// startLevel is the level at the start of a leadership. A new state starts at level 1.
func (c *controller) startLevel() uint32 {
	now, newest := c.n.Level()
	if c.n.cfg.standalone() {
		return newest // no other server needs to know it
	}
	return max(now, 1)
}

// RefusedMessages returns the number of Raft messages that this server has refused
// since it started, because no correct server sends them.
func (n *Node) RefusedMessages() int64 { return n.peers.RefusedMessages() }

// Patience returns how long servers wait for a silent leader: dead if its machine
// accepts no connections, slow if only its process is silent.
func Patience(tickTime time.Duration, syncLimit int) (dead, slow time.Duration) {
	t := (&Config{TickTime: tickTime, SyncLimit: syncLimit}).timing()
	return t.Dead, t.Slow
}

package raftfsm

import (
	"github.com/hashicorp/raft"
)

// What a server is follows from the membership of the moment, never from its own
// configuration file or from what it was when the present leader was elected.

// Self returns this server's line in the membership, or what its configuration file
// says of it while the membership does not have it.
func (n *Node) Self() Member {
	if m := n.others.ownLine(); m != nil {
		return *m
	}
	for _, m := range n.cfg.Members {
		if m.ID == n.cfg.ID {
			return m
		}
	}
	return Member{ID: n.cfg.ID}
}

// ByReconfig reports whether a client's reconfig has named this line of the membership.
func (m Member) ByReconfig() bool { return m.named }

// ownLine implements others.
func (alone) ownLine() *Member { return nil }

// ownLine implements others.
func (e *ensemble) ownLine() *Member {
	if m := e.replicated(); m != nil {
		return m.member(e.self.ID)
	}
	return nil
}

// observes reports whether a server in Raft's configuration is an observer, by the
// membership m if that has it. One that is not listed yet is what its vote says.
func (m *membership) observes(s raft.Server) bool {
	if m != nil {
		if x := m.member(serverOf(s.ID)); x != nil {
			return x.Observer
		}
	}
	return s.Suffrage != raft.Voter
}

// followerRole is what this server is while another one leads.
func (e *ensemble) followerRole() Role {
	observer := e.self.Observer
	if m := e.ownLine(); m != nil {
		observer = m.Observer
	}
	if observer {
		return Observer
	}
	return Follower
}

// refreshRole publishes another role when the membership gives this server one.
func (e *ensemble) refreshRole() {
	was := e.n.Status()
	if was.Role != Follower && was.Role != Observer || was.Role == e.followerRole() {
		return
	}
	e.n.do(func() {
		e.mu.Lock()
		t := e.target
		e.mu.Unlock()
		if s := e.n.Status(); s.Role == was.Role && s.Leader == t.server {
			e.publishFollowing(t, s.Serving)
		}
	})
}

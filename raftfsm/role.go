package raftfsm

// A server's role follows from the current membership, never from its own configuration
// file or from its role when the current leader was elected.

// Self returns this server's line in the membership, or in its configuration file while
// the membership lacks it.
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

// ownLine implements others.
func (alone) ownLine() *Member { return nil }

// ownLine implements others.
func (e *ensemble) ownLine() *Member {
	if m := e.replicated(); m != nil {
		return m.Member(e.self.ID)
	}
	return nil
}

// followerRole returns this server's role while another server leads.
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

// refreshRole publishes this server's role if the membership has changed it.
func (e *ensemble) refreshRole() {
	was := e.env.status()
	if was.Role != Follower && was.Role != Observer || was.Role == e.followerRole() {
		return
	}
	e.env.do(func() {
		e.mu.Lock()
		t := e.target
		e.mu.Unlock()
		if s := e.env.status(); s.Role == was.Role && s.Leader == t.server {
			e.publishFollowing(t, s.Serving)
		}
	})
}

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

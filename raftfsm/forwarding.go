package raftfsm

import "github.com/zkgo/zkgo/raftfsm/internal/propose"

// follow ends the current forwarding, if any, and sends this server's commands to f from
// now on. Only the control goroutine may call it.
func (c *controller) follow(f propose.Stream) {
	c.unfollow(propose.ErrNewLeader)
	c.forwarding = propose.NewForwarding(f, c.n.local)
	c.n.background.Go(c.forwarding.Run)
}

// unfollow ends the forwarding, if any, and gives up the commands in flight. Only the
// control goroutine may call it.
func (c *controller) unfollow(reason error) {
	f := c.forwarding
	if f == nil {
		return
	}
	c.forwarding = nil
	f.Halt()
	c.lose(reason)
}

// touch reports sessions that another server has heard from. Any goroutine may call it.
func (n *Node) touch(sessions []int64) {
	now := n.cfg.Now()
	events := make([]event, len(sessions))
	for i, id := range sessions {
		events[i] = event{kind: evTouched, session: id, at: now}
	}
	n.mail.post(events)
}

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

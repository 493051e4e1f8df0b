package raftfsm

import "github.com/zkgo/zkgo/raftfsm/internal/propose"

// follow ends the current forwarding, if any, and sends this server's commands to f from
// now on. Only the control goroutine may call it.
func (n *Node) follow(f propose.Stream) {
	n.unfollow(propose.ErrNewLeader)
	n.forwarding = propose.NewForwarding(f, n.intake)
	n.background.Go(n.forwarding.Run)
}

// unfollow ends the forwarding, if any, and gives up the commands in flight. Only the
// control goroutine may call it.
func (n *Node) unfollow(reason error) {
	f := n.forwarding
	if f == nil {
		return
	}
	n.forwarding = nil
	f.Halt()
	n.lose(reason)
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

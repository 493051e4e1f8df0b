package ensemble

import "time"

const (
	// ElectionTimeout is the maximum duration of an election that reaches every voter.
	// It doesn't determine when a server gives up its leader: see timing.
	ElectionTimeout = time.Second
	// ServiceBound is the longest interruption that the loss of a connection between two
	// servers may cause, whatever syncLimit × tickTime is.
	ServiceBound = 5 * time.Second
	// minStall ensures that, with small ticks, a busy processor isn't mistaken for a dead
	// path. Two stall limits fit into syncLimit × tickTime for ticks of 200 ms and the
	// default syncLimit: a write through a follower may first find the follower's
	// connection to the leader dead, and then the leader's connection to the follower.
	minStall = 450 * time.Millisecond
)

// stallLimit returns how long a stream between two servers may make no progress before
// it is replaced. Service must resume within the smaller of syncLimit × tickTime and
// serviceBound. A limit of about a third of that leaves time for detection, a second
// attempt and an election. A stream with a message every reportInterval may miss two
// messages.
func (b *base) stallLimit() time.Duration {
	return max(min(b.syncLimit(), ServiceBound)*3/10, 3*b.reportInterval(), minStall)
}

// heartbeatStall is the stall limit for requests that are answered immediately. It is
// shorter than the leader's lease, and so short that a connection that the network has
// silently dropped causes no election: before followers give up their leader, it waits for
// the next heartbeat, finds the connection dead, and waits for the next heartbeat again,
// which goes over a new connection. We use three quarters of the time that these two
// pauses leave.
func (b *base) heartbeatStall() time.Duration {
	t := b.env.Config.Timing()
	pause := t.pace / 5 // the longest between two heartbeats
	return min(b.stallLimit(), ElectionTimeout/2, (t.Slow-2*pause)*3/4)
}

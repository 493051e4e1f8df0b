package raftfsm

import "time"

const (
	// serviceBound is how long the loss of a connection between two servers may cost
	// at most, whatever syncLimit × tickTime is.
	serviceBound = 5 * time.Second
	// minStall keeps small ticks from taking a busy processor for a dead path. Two of
	// them fit into syncLimit × tickTime for ticks of 200 ms and the default syncLimit: a
	// write through a follower may find first that server's connection to the leader dead
	// and then the leader's to it.
	minStall = 450 * time.Millisecond
)

// stallLimit is how long a stream between two servers may make no progress before
// it is replaced. Service has to be back within the smaller of syncLimit × tickTime
// and serviceBound; about a third of it leaves time for noticing, for a second
// attempt and for an election. A stream on which something is sent every
// reportInterval may miss two of them.
func (e *ensemble) stallLimit() time.Duration {
	return max(min(e.syncLimit(), serviceBound)*3/10, 3*e.reportInterval(), minStall)
}

// heartbeatStall is the same for requests that are answered at once. It is less
// than what a leader's lease and its followers' patience allow: a connection that
// the network has forgotten costs no election.
func (e *ensemble) heartbeatStall() time.Duration { return min(e.stallLimit(), electionTimeout/2) }

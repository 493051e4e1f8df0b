package transport

import (
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// relayLimit limits how long stand waits for an idle relay.
const relayLimit = 5 * time.Millisecond

// relay passes the messages of other servers to Raft.
//
// Invariants:
//   - It passes one message at a time, as Raft handles them. So Applied is exact when a
//     snapshot arrives, because no entry is still in flight to Raft.
//   - A snapshot that doesn't go beyond Applied never reaches Raft. Raft would reset the
//     state machine and discard entries that this server has acknowledged.
//   - No message follows a snapshot that was installed, because the next Raft instance
//     reads the log that belongs to the snapshot.
//   - This server starts an election only while no message waits. The message may be a
//     vote request, and two candidates would split the votes.
type relay struct {
	*instance
	checker    *checker
	abstention *abstention
	inbound    chan incoming // checked messages from other servers
	consumer   chan raft.RPC // Raft reads it
	stands     chan stand    // asks the relay to start an election
}

func newRelay(i *instance, checks *checker, a *abstention) *relay {
	return &relay{instance: i, checker: checks, abstention: a,
		inbound: make(chan incoming), consumer: make(chan raft.RPC), stands: make(chan stand)}
}

// Consumer returns the channel of RPCs from other servers.
func (r *relay) Consumer() <-chan raft.RPC { return r.consumer }

// run passes on messages until the transport is closed.
func (r *relay) run() {
	for {
		select {
		case in := <-r.inbound:
			if !r.cfg.Replays.arrived(r, in) {
				return
			}
		case c := <-r.cfg.Replays.late():
			if !r.pass(incoming{RPC: c.rpc}, c.unfiltered) {
				return
			}
		case s := <-r.stands:
			select {
			case in := <-r.inbound: // goes first: it may be a vote request
				s.done <- false
				if !r.cfg.Replays.arrived(r, in) {
					return
				}
			default:
				s.done <- s.seen.holds(r.cfg.View()) && r.Kick()
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// incoming is a checked RPC from another server.
type incoming struct {
	raft.RPC
	answered <-chan struct{} // closed when the stream of the RPC has ended; nil: it has none
}

// pass hands an RPC to Raft. It returns false if that was the last RPC for this Raft
// instance.
func (r *relay) pass(in incoming, unfiltered bool) bool {
	rpc := in.RPC
	req, snapshot := rpc.Command.(*raft.InstallSnapshotRequest)
	if snapshot && !unfiltered && r.outdated(req) {
		// Answer as if it had been installed: this server has everything in it.
		_, _ = io.Copy(io.Discard, rpc.Reader)
		rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: req.RPCHeader, Term: req.Term, Success: true}, nil)
		return true
	}
	switch c := rpc.Command.(type) {
	case *raft.AppendEntriesRequest, *raft.InstallSnapshotRequest:
		r.abstention.heardLeader(time.Now())
	case *raft.TimeoutNowRequest:
		// Only the leader transfers its leadership. The message of a leader that has just
		// been replaced may arrive late.
		if leader := r.checker.leaders.newest(); leader != "" && string(leader) != string(c.ID) {
			rpc.Respond(&raft.TimeoutNowResponse{}, errNotLeader)
			return true
		}
		if r.abstention.holds(time.Now()) {
			rpc.Respond(&raft.TimeoutNowResponse{}, errAbstains)
			return true
		}
	}
	if snapshot && r.cfg.Installing != nil {
		r.cfg.Installing()
	}
	answer, ok := r.deliver(rpc)
	if !ok {
		return false
	}
	if done, ok := answer.Response.(*raft.InstallSnapshotResponse); ok && done.Success && r.cfg.Installed != nil {
		r.awaitAnswered(in)
		r.cfg.Installed()
		return false // this Raft instance is about to be replaced
	}
	return true
}

// awaitAnswered waits until the leader has been sent the answer to a snapshot. Installed
// makes this server close all streams of the transport. If we closed this one before the
// answer, the leader would mistake the installed snapshot for a failure. The stream's limit
// bounds the wait.
func (r *relay) awaitAnswered(in incoming) {
	if in.answered == nil {
		return
	}
	select {
	case <-in.answered:
	case <-r.ctx.Done():
	}
}

// stand asks the relay to start an election for this server.
type stand struct {
	seen View        // the view that the decision is based on
	done chan<- bool // reports whether the election has started
}

// holds reports whether a decision based on v is still valid after the poll of the other
// voters: no server has become leader since, this server isn't a candidate, and it has
// granted no vote.
func (v View) holds(now View) bool {
	return now.Leader == v.Leader && !now.Candidate && now.Term == v.Term
}

// stand calls Kick unless something has changed since seen, or an RPC is on its way to
// Raft. The disk may keep Raft from handling the RPC for a while. It may be another
// server's vote request, and an election would split the votes.
func (r *relay) stand(seen View) bool {
	timer := time.NewTimer(relayLimit)
	defer timer.Stop()
	stood := make(chan bool, 1)
	select {
	case r.stands <- stand{seen, stood}:
	case <-timer.C:
		return false
	case <-r.ctx.Done():
		return false
	}
	select {
	case ok := <-stood:
		return ok
	case <-r.ctx.Done():
		return false
	}
}

// outdated reports whether this server already has everything in a snapshot. Raft would
// install it anyway: it would reset the state machine and discard entries that this
// server has acknowledged.
func (r *relay) outdated(req *raft.InstallSnapshotRequest) bool {
	return r.cfg.Applied != nil && req.LastLogIndex <= r.cfg.Applied()
}

// deliver returns Raft's answer, or false if the transport was closed in the meantime.
func (r *relay) deliver(rpc raft.RPC) (raft.RPCResponse, bool) {
	answer := make(chan raft.RPCResponse, 1)
	inner := raft.RPC{Command: r.rebased(rpc.Command), Reader: rpc.Reader, RespChan: answer}
	select {
	case r.consumer <- inner:
	case <-r.ctx.Done():
		return raft.RPCResponse{}, false
	}
	select {
	case a := <-answer:
		rpc.Respond(a.Response, a.Error)
		return a, true
	case <-r.ctx.Done():
		return raft.RPCResponse{}, false
	}
}

// Kick makes this server start an election immediately, without asking first whether it
// could win. It returns when Raft has handled the request.
func (r *relay) Kick() bool {
	answer := make(chan raft.RPCResponse, 1)
	select {
	case r.consumer <- raft.RPC{Command: r.timeoutNow(), RespChan: answer}:
	case <-r.ctx.Done():
		return false
	}
	select {
	case <-answer:
		return true
	case <-r.ctx.Done():
		return false
	}
}

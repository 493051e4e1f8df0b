package quorum

import (
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// relayLimit is how long stand waits for an idle relay.
const relayLimit = 5 * time.Millisecond

// relay passes the RPCs of other servers to Raft, one at a time, as Raft handles them.
// Because we wait for each, Applied is exact when a snapshot arrives: no entry is still in
// flight to Raft.
func (t *Transport) relay() {
	defer t.wg.Done()
	for {
		select {
		case in := <-t.inbound:
			if !t.replays.arrived(t, in) {
				return
			}
		case c := <-t.replays.due:
			if !t.pass(incoming{RPC: c.rpc}, c.unfiltered) {
				return
			}
		case s := <-t.stands:
			select {
			case in := <-t.inbound: // goes first: it may be a vote request
				s.done <- false
				if !t.replays.arrived(t, in) {
					return
				}
			default:
				s.done <- s.seen.holds(t.cfg.View()) && t.Kick()
			}
		case <-t.done:
			return
		}
	}
}

// incoming is a checked RPC from another server.
type incoming struct {
	raft.RPC
	answered <-chan struct{} // closed when the stream of the RPC has ended; nil: it has none
}

// pass hands an RPC to Raft. It returns false if that was the last one for this Raft.
func (t *Transport) pass(in incoming, unfiltered bool) bool {
	rpc := in.RPC
	req, snapshot := rpc.Command.(*raft.InstallSnapshotRequest)
	if snapshot && !unfiltered && t.outdated(req) {
		// We answer as if it had been installed, because this server has everything in it.
		_, _ = io.Copy(io.Discard, rpc.Reader)
		rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: req.RPCHeader, Term: req.Term, Success: true}, nil)
		return true
	}
	switch c := rpc.Command.(type) {
	case *raft.AppendEntriesRequest, *raft.InstallSnapshotRequest:
		t.abstention.heardLeader(time.Now())
	case *raft.TimeoutNowRequest:
		// Only the leader transfers its leadership. The message of a leader that has just
		// been replaced may arrive late.
		if leader := t.leaders.newest(); leader != "" && string(leader) != string(c.ID) {
			rpc.Respond(&raft.TimeoutNowResponse{}, errNotLeader)
			return true
		}
		if t.abstains() {
			rpc.Respond(&raft.TimeoutNowResponse{}, errAbstains)
			return true
		}
	}
	if snapshot && t.cfg.Installing != nil {
		t.cfg.Installing()
	}
	r, ok := t.deliver(rpc)
	if !ok {
		return false
	}
	if done, ok := r.Response.(*raft.InstallSnapshotResponse); ok && done.Success && t.cfg.Installed != nil {
		t.awaitAnswered(in)
		t.cfg.Installed()
		return false // this Raft instance is about to be replaced
	}
	return true
}

// awaitAnswered waits until the leader has been sent the answer to a snapshot. Installed
// makes this server close all streams of the transport. If we closed this one before the
// answer, the leader would mistake the installed snapshot for a failure. The stream's limit
// bounds the wait.
func (t *Transport) awaitAnswered(in incoming) {
	if in.answered == nil {
		return
	}
	select {
	case <-in.answered:
	case <-t.done:
	}
}

// stand asks the relay to let this server stand for election.
type stand struct {
	seen View        // the view that the decision is based on
	done chan<- bool // reports whether this server stands
}

// holds reports whether a decision based on v is still valid, after the other voters have
// been asked: no server has become leader in the meantime, this server isn't a candidate,
// and it has granted no vote.
func (v View) holds(now View) bool {
	return now.Leader == v.Leader && !now.Candidate && now.Term == v.Term
}

// stand calls Kick unless something has changed since seen, or an RPC is on its way to
// Raft. That RPC, which Raft may be unable to handle because of the disk, may be another
// server's vote request. If we stood now, we would split the votes.
func (t *Transport) stand(seen View) bool {
	timer := time.NewTimer(relayLimit)
	defer timer.Stop()
	stood := make(chan bool, 1)
	select {
	case t.stands <- stand{seen, stood}:
	case <-timer.C:
		return false
	case <-t.done:
		return false
	}
	select {
	case ok := <-stood:
		return ok
	case <-t.done:
		return false
	}
}

// outdated reports whether this server already has everything in a snapshot. Raft would
// install it anyway: it would reset the state machine and discard entries that this
// server has acknowledged.
func (t *Transport) outdated(req *raft.InstallSnapshotRequest) bool {
	return t.cfg.Applied != nil && req.LastLogIndex <= t.cfg.Applied()
}

// deliver returns Raft's answer, or false if the transport was closed in the meantime.
func (t *Transport) deliver(rpc raft.RPC) (raft.RPCResponse, bool) {
	answer := make(chan raft.RPCResponse, 1)
	inner := raft.RPC{Command: t.rebased(rpc.Command), Reader: rpc.Reader, RespChan: answer}
	select {
	case t.consumer <- inner:
	case <-t.done:
		return raft.RPCResponse{}, false
	}
	select {
	case r := <-answer:
		rpc.Respond(r.Response, r.Error)
		return r, true
	case <-t.done:
		return raft.RPCResponse{}, false
	}
}

// Kick makes this server start an election immediately, without asking first whether it
// could win. It returns when Raft has handled the request.
func (t *Transport) Kick() bool {
	answer := make(chan raft.RPCResponse, 1)
	select {
	case t.consumer <- raft.RPC{Command: t.timeoutNow(), RespChan: answer}:
	case <-t.done:
		return false
	}
	select {
	case <-answer:
		return true
	case <-t.done:
		return false
	}
}

// timeoutNow returns a request of this server to stand for election immediately.
func (t *Transport) timeoutNow() *raft.TimeoutNowRequest {
	return &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(t.id), Addr: []byte(t.id)}}
}

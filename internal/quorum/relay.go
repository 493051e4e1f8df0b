package quorum

import (
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// relayLimit is how soon the relay takes notice when it has nothing to do.
const relayLimit = 5 * time.Millisecond

// relay passes the RPCs of other servers to Raft, one at a time. Raft handles
// them one at a time anyway; waiting for each here makes Applied mean what it
// says when a snapshot comes in: no entry is between the two.
func (t *Transport) relay() {
	defer t.wg.Done()
	for {
		select {
		case rpc := <-t.inbound:
			if !t.replays.arrived(t, rpc) {
				return
			}
		case c := <-t.replays.due:
			if !t.pass(c.rpc, c.unfiltered) {
				return
			}
		case s := <-t.stands:
			select {
			case rpc := <-t.inbound: // it goes first: it may be for a vote
				s.done <- false
				if !t.replays.arrived(t, rpc) {
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

// pass hands an RPC to Raft, false when that was the last one for it.
func (t *Transport) pass(rpc raft.RPC, unfiltered bool) bool {
	req, snapshot := rpc.Command.(*raft.InstallSnapshotRequest)
	if snapshot && !unfiltered && t.outdated(req) {
		// As if it had been installed: everything in it is here.
		_, _ = io.Copy(io.Discard, rpc.Reader)
		rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: req.RPCHeader, Term: req.Term, Success: true}, nil)
		return true
	}
	switch c := rpc.Command.(type) {
	case *raft.AppendEntriesRequest, *raft.InstallSnapshotRequest:
		t.abstention.heardLeader(time.Now())
	case *raft.TimeoutNowRequest:
		// Only the leader hands over its lead. The message of one that has just been
		// replaced may come late.
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
		t.cfg.Installed()
		return false // this Raft instance is about to be replaced
	}
	return true
}

// stand asks the relay to let this server stand for election.
type stand struct {
	seen View        // by which that was decided
	done chan<- bool // says whether it does
}

// holds says whether what was decided by v still stands, now that the others
// have been asked: nobody has taken the lead meanwhile, this server least of
// all, and it has given nobody its vote.
func (v View) holds(now View) bool {
	return now.Leader == v.Leader && !now.Candidate && now.Term == v.Term
}

// stand is Kick unless something has changed since seen, or an RPC is on its way
// to Raft: while the disk keeps Raft from looking at it, it may well be another
// server's request for a vote, and standing then would split the votes.
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

// outdated reports that a snapshot holds nothing this server does not have.
// Raft would install it all the same: set the state machine back and throw
// away entries that this server has acknowledged.
func (t *Transport) outdated(req *raft.InstallSnapshotRequest) bool {
	return t.cfg.Applied != nil && req.LastLogIndex <= t.cfg.Applied()
}

// deliver returns Raft's answer, false when the transport was closed meanwhile.
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

// Kick makes this server start an election at once, without asking first
// whether it could win. It returns when Raft has taken notice.
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

// timeoutNow is a request of this server to stand for election at once.
func (t *Transport) timeoutNow() *raft.TimeoutNowRequest {
	return &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(t.id), Addr: []byte(t.id)}}
}

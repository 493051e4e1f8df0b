package quorum

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// candidacy is the minimum time a server stands for election before it gives up; the
// maximum is twice that. We can't use Raft's own election timeout: raftfsm sets Raft's
// timers so that they neither start nor end an election (see its timing).
const candidacy = time.Second

// RequestVote asks for a vote. If the answer doesn't arrive in time, or is no, we report a
// newer term to the candidate, and Raft makes it a follower again. The server can then
// poll the other voters, and another server may be elected. A candidate that has won in
// the meantime ignores that answer.
func (t *Transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	answer := new(raft.RequestVoteResponse)
	var answered atomic.Bool
	began := time.Now()
	granted := t.inTime(func() bool {
		err := t.again(func() error { return t.beats.RequestVote(id, target(id, addr), args, answer) })
		answered.Store(err == nil)
		err = errors.Join(err, t.examineAnswer(id, answer.Term))
		return err == nil && (answer.Granted || answer.Term > args.Term)
	})
	if granted {
		*resp = *answer
	} else {
		if !answered.Load() && t.streams.stalledSince(string(id), began) {
			t.judgeCandidacy(args.Term, id)
		}
		*resp = raft.RequestVoteResponse{RPCHeader: args.RPCHeader, Term: args.Term + 1}
	}
	return nil
}

// RequestPreVote asks whether the peer would grant its vote. Raft calls it when one of its
// timers has run out. A no has no effect: if a server was cut off, it must not return with
// a newer term.
func (t *Transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if t.abstains() {
		return errAbstains
	}
	err := t.again(func() error { return t.beats.RequestPreVote(id, target(id, addr), args, resp) })
	return errors.Join(err, t.examineAnswer(id, resp.Term))
}

// inTime reports whether ask returns true before a candidacy ends. It returns immediately
// in that case, otherwise when the candidacy has ended.
func (t *Transport) inTime(ask func() bool) bool {
	limit := time.NewTimer(candidacy + rand.N(candidacy))
	defer limit.Stop()
	yes := make(chan bool, 1)
	if !t.spawn(func() { yes <- ask() }) {
		return false
	}
	for {
		select {
		case ok := <-yes:
			if ok {
				return true
			}
		case <-limit.C:
			return false
		case <-t.done:
			return false
		}
	}
}

// spawn runs f on a goroutine that Close waits for. It returns false, without running f,
// when the transport is closed.
func (t *Transport) spawn(f func()) bool {
	t.pusher.mu.Lock() // Close locks it before it waits
	defer t.pusher.mu.Unlock()
	if t.closed() {
		return false
	}
	t.wg.Go(f)
	return true
}

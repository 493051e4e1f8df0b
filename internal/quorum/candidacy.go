package quorum

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// candidacy is how long a server stands for election before it gives up, and up to
// twice that. Raft's own election timeout does not end: its timers take part in
// nothing (raftfsm's timing).
const candidacy = time.Second

// RequestVote asks for a vote. Where the answer does not come in time, or is no, the
// candidate is told of a newer term in the end, whereupon Raft makes it a follower
// again: then it may ask the others how they stand, and another one may be elected.
// A candidate that has won meanwhile does not look at that answer.
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

// RequestPreVote asks whether a vote would be given. Raft does so when one of its
// timers has run out. Nothing is made of a no: a server that is cut off must not
// come back with a newer term.
func (t *Transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if t.abstains() {
		return errAbstains
	}
	err := t.again(func() error { return t.beats.RequestPreVote(id, target(id, addr), args, resp) })
	return errors.Join(err, t.examineAnswer(id, resp.Term))
}

// inTime reports whether ask has said yes before a candidacy ends. It returns at
// once in that case, and else when the candidacy has ended.
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

// spawn runs f on a goroutine that Close waits for. It reports false, and runs
// nothing, when the transport is closed.
func (t *Transport) spawn(f func()) bool {
	t.pusher.mu.Lock() // Close takes it before it waits
	defer t.pusher.mu.Unlock()
	if t.closed() {
		return false
	}
	t.wg.Go(f)
	return true
}

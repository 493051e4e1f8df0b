package transport

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// candidacyTime is the minimum time for which a server remains a candidate; the maximum
// is twice that. Raft's own election timeout doesn't help: raftfsm sets Raft's timers so
// that they start and end no election (see its timing).
const candidacyTime = time.Second

// candidacy asks the other voters for their votes.
//
// Invariants:
//   - A candidacy ends: otherwise a candidate that no quorum answers couldn't follow
//     another leader.
//   - A denied pre-vote doesn't raise the term: a server that was cut off would depose the
//     leader when it returns.
type candidacy struct {
	*instance
	checker    *checker
	net        *raft.NetworkTransport
	links      *links
	abstention *abstention
}

// RequestVote asks for a vote. If the answer doesn't come in time, or is no, RequestVote
// finally reports a newer term to the candidate, and Raft makes it a follower again. The
// server can then ask the other voters, and another server may be elected. A
// candidate that has won in the meantime ignores that answer.
func (c *candidacy) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	answer := new(raft.RequestVoteResponse)
	var answered atomic.Bool
	began := time.Now()
	granted := c.inTime(func() bool {
		err := c.again(func() error { return c.net.RequestVote(id, target(id, addr), args, answer) })
		answered.Store(err == nil)
		err = errors.Join(err, c.checker.examineAnswer(id, answer.Term))
		return err == nil && (answer.Granted || answer.Term > args.Term)
	})
	if granted {
		*resp = *answer
	} else {
		if !answered.Load() && c.links.stalledSince(string(id), began) {
			c.judgeCandidacy(args.Term, id)
		}
		*resp = raft.RequestVoteResponse{RPCHeader: args.RPCHeader, Term: args.Term + 1}
	}
	return nil
}

// RequestPreVote asks whether the peer would grant its vote. Raft calls it when one of
// its timers has run out. A no has no effect: a server that was cut off must not come
// back with a newer term.
func (c *candidacy) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if c.abstention.holds(time.Now()) {
		return errAbstains
	}
	err := c.again(func() error { return c.net.RequestPreVote(id, target(id, addr), args, resp) })
	return errors.Join(err, c.checker.examineAnswer(id, resp.Term))
}

// inTime reports whether ask returns true before a candidacy ends. It returns immediately
// in that case, otherwise when the candidacy has ended.
func (c *candidacy) inTime(ask func() bool) bool {
	limit := time.NewTimer(candidacyTime + rand.N(candidacyTime))
	defer limit.Stop()
	yes := make(chan bool, 1)
	if !c.spawn(func() { yes <- ask() }) {
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
		case <-c.ctx.Done():
			return false
		}
	}
}

// again repeats a vote request on every pooled connection. They may all be left over from
// a process that has been replaced, which shows only when they are used, and Raft asks
// only once per election. Asking twice is harmless: the answer is the same.
func (c *candidacy) again(request func() error) error {
	var err error
	for range maxPool + 1 {
		err = request()
		if err == nil || quorum.Refused(err) || quorum.IsTimeout(err) || c.closed() {
			break
		}
	}
	return err
}

// judgeCandidacy is called when a vote request of term made no progress on its way to a
// voter. It makes this server abstain when the other voters are no quorum.
func (c *candidacy) judgeCandidacy(term uint64, id raft.ServerID) {
	if c.cfg.View == nil || !c.abstention.stuckVote(term, id, c.cfg.View().Config) {
		return
	}
	if c.abstention.begin(term, time.Now()) {
		c.cfg.Hub.Log().Warn("this server's vote requests reach no quorum, although other servers answer; it lets another server lead; "+
			"check the MTU of the network between the servers", "term", term)
	}
}

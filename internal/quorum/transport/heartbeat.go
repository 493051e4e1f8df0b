package transport

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// heartbeat sends this leader's heartbeats, and stops when the leader can't replicate, so
// that another server can lead (abstain.go).
//
// Invariants:
//   - A heartbeat isn't repeated, because the time when it was sent determines how long
//     this server may lead. If links.abandon has closed the pooled connection, the
//     heartbeat wasn't sent at all, so it goes out on the next connection. Otherwise each
//     such connection would cost the leader a heartbeat, and after two lost heartbeats
//     the followers could give it up.
//   - A leader without a working path to a quorum sends none after two stall limits.
//     Otherwise it would lead forever and commit nothing.
//   - The limit doubles with each further term, because no server can do better if all
//     paths are bad.
type heartbeat struct {
	*instance
	sender     *sender
	net        *raft.NetworkTransport
	pusher     *pusher
	links      *links
	abstention *abstention
	muting     muting // mutes a leader that can't replicate
}

func newHeartbeat(i *instance, send *sender, over *raft.NetworkTransport, push *pusher, l *links, a *abstention) *heartbeat {
	return &heartbeat{instance: i, sender: send, net: over, pusher: push, links: l, abstention: a, muting: muting{limit: 2 * i.cfg.Stall}}
}

func (h *heartbeat) send(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if h.cannotReplicate(args.Term, time.Now()) {
		return errMuted
	}
	err := net.ErrClosed
	for tries := maxPool + 1; tries > 0 && errors.Is(err, net.ErrClosed) && !h.closed(); tries-- {
		err = h.sender.send(h.net, id, addr, args, resp)
	}
	h.sender.paths.beat(args.Term, id, err)
	return err
}

// Reached tells the transport that this server's large packets reach the current leader.
func (h *heartbeat) Reached() {
	h.abstention.over()
	h.muting.reset()
}

// cannotReplicate reports whether the leader of term must send no heartbeats
// because its requests don't reach a quorum.
func (h *heartbeat) cannotReplicate(term uint64, now time.Time) bool {
	if h.cfg.View == nil || !h.sender.paths.some(term) {
		h.abstention.end(term)
		return false
	}
	if h.abstention.helped() {
		h.muting.reset() // other servers can lead, too
	}
	conf := h.cfg.View().Config
	age := h.sender.paths.stuck(term, conf, h.cfg.ID, now, failuresInARow)
	if !h.muting.silent(term, age, now) {
		if !h.sender.contacts.Confirmed(term, conf, now).IsZero() {
			h.abstention.end(term)
		}
		return false
	}
	if h.abstention.begin(term, now) {
		h.cfg.Hub.Log().Warn("this server steps down: heartbeats reach the others, but entries reach no quorum; "+
			"check the MTU of the network between the servers", "for", age.Round(time.Millisecond), "term", term)
		h.spawn(func() { h.resign(term, conf) })
	}
	return true
}

// resign asks the followers in turn, starting with the longest log, to start an election
// immediately. The request is small and gets through. resign then closes the connections
// that this server has opened, so that the other servers notice that it doesn't lead even
// if no follower starts an election.
func (h *heartbeat) resign(term uint64, conf raft.Configuration) {
	voters := otherVoters(conf, h.cfg.ID)
	slices.SortStableFunc(voters, func(a, b raft.Server) int {
		return cmp.Compare(h.pusher.Acked(term, b.ID), h.pusher.Acked(term, a.ID))
	})
	for _, s := range voters {
		if h.net.TimeoutNow(s.ID, target(s.ID, s.Address), h.timeoutNow(), new(raft.TimeoutNowResponse)) == nil {
			break
		}
	}
	h.links.hangUp()
}

// judgeWin is called when a request of term made no progress. It makes this server
// abstain if it won the election of that term and no AppendEntries, heartbeats included,
// has reached a quorum since. The lease may have ended by now.
func (h *heartbeat) judgeWin(term uint64, now time.Time) {
	if h.cfg.View == nil {
		return
	}
	conf := h.cfg.View().Config
	age := h.sender.paths.stuck(term, conf, h.cfg.ID, now, 1)
	if age < h.cfg.Stall || !h.sender.contacts.Confirmed(term, conf, now).IsZero() {
		return
	}
	if h.abstention.begin(term, now) {
		h.cfg.Hub.Log().Warn("this server has won an election and reaches no quorum with heartbeats or entries, and lets another server lead; "+
			"check the MTU of the network between the servers", "for", age.Round(time.Millisecond), "term", term)
	}
}

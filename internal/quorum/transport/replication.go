package transport

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's leader sleeps after a failed AppendEntries, up to 10.24 s after the twelfth
// consecutive failure, and the follower's return doesn't end that sleep. So the transport
// doesn't report failures to Raft: it repeats the request, with short pauses, as long as
// this server leads the term of the request and the follower is a member at that address.
// Heartbeats, which decide how long this server may lead, are not repeated.

const (
	// firstPause and lastPause are the pauses between two attempts to reach a
	// follower.
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
	// failuresInARow is the number of consecutive failures after which a path counts as
	// broken: the second request was made on a new connection.
	failuresInARow = 2
)

// replication sends Raft's entries to the followers.
//
// Invariants:
//   - Raft learns about no failure while this server leads the term of the request:
//     otherwise it would sleep while the follower is back.
//   - A request is repeated only for a member at the address that Raft gave. Otherwise it
//     would never end for a server that was removed.
//   - Requests to a follower stay in order (pusher.request).
type replication struct {
	*instance
	heartbeat *heartbeat
	paths     *paths
	pusher    *pusher
	links     *links
}

// send sends entries. If they were sent early, it returns the answer to that request.
func (r *replication) send(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if deposed(args.Term, args.PrevLogTerm, args.Entries) {
		return errDeposed
	}
	shorten(args)
	s := r.replicate(id, addr, args)
	if *resp = s.resp; s.err != nil || !resp.Success {
		return s.err
	}
	if len(s.args.Entries) > 0 && r.cfg.Acknowledged != nil {
		r.cfg.Acknowledged(id, s.took)
	}
	if joined := r.pusher.acked(id, addr, s.args); joined && r.cfg.Joined != nil {
		r.cfg.Joined()
	}
	return nil
}

// replicate carries out a request of Raft's main stream to a follower. It retries until
// the request succeeds or is obsolete.
func (r *replication) replicate(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest) *sent {
	for pauseFor := firstPause; ; pauseFor = min(2*pauseFor, lastPause) {
		began := time.Now()
		s := r.pusher.request(id, addr, args)
		if s.err == nil {
			r.paths.works(args.Term, id)
			return s
		}
		r.noteFailure(args.Term, id, began, s.err)
		if !r.replicates(args.Term, id, addr) || !r.pause(pauseFor) || !r.replicates(args.Term, id, addr) {
			return s
		}
	}
}

// noteFailure records that replication to a follower failed.
func (r *replication) noteFailure(term uint64, id raft.ServerID, began time.Time, err error) {
	if errors.Is(err, errMuted) || r.closed() {
		return
	}
	first := r.paths.failed(term, id, began)
	if !r.links.stalledSince(string(id), began) {
		return
	}
	if first {
		r.cfg.Hub.Log().Info("replacing a connection on which a follower makes no progress", "server", id, "for", r.cfg.Stall)
	}
	r.heartbeat.judgeWin(term, time.Now())
}

// replicates reports whether this server leads a term and has the follower at the
// address.
func (r *replication) replicates(term uint64, id raft.ServerID, addr raft.ServerAddress) bool {
	if r.closed() || r.cfg.View == nil {
		return false
	}
	v := r.cfg.View()
	return v.Leader == r.cfg.ID && v.Term == term && slices.ContainsFunc(v.Config.Servers,
		func(s raft.Server) bool { return s.ID == id && s.Address == addr })
}

// shorten drops the last entries of a request that is larger than its receiver may
// accept, but never the first one. Raft continues after the last remaining entry: it
// looks at the request again when it gets the answer.
func shorten(args *raft.AppendEntriesRequest) {
	if n := fitting(args.Entries); n < len(args.Entries) {
		args.Entries = args.Entries[:n]
		args.LeaderCommitIndex = min(args.LeaderCommitIndex, args.Entries[n-1].Index)
	}
}

// fitting returns how many of the entries fit into one message: as many as the receiver
// accepts in addition to an entry of the maximum size (besideEntry), and at least one.
func fitting(entries []*raft.Log) int {
	size := 0
	for n, e := range entries {
		if size += len(e.Data) + len(e.Extensions); n > 0 && size > besideEntry/2 {
			return n
		}
	}
	return len(entries)
}

// errDeposed is returned for a request of a leader that has been replaced. Raft's
// goroutine for a follower may read the log again after this server has started to follow
// the next leader, and then finds that leader's entries. The other servers refuse a
// message with entries of a later term than its own.
var errDeposed = errors.New("quorum: this server is no longer the leader")

func deposed(term, prevTerm uint64, entries []*raft.Log) bool {
	return prevTerm > term || len(entries) > 0 && entries[len(entries)-1].Term > term
}

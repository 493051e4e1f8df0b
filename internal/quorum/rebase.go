package quorum

import (
	"slices"

	"github.com/hashicorp/raft"
)

// rebase makes an AppendEntries acceptable whose place in the log lies before
// the first entry that this server still has.
//
// A leader comes there when the answer to what it sent behind a snapshot was
// lost: it repeats that, or begins to look for common ground. Raft refuses, for
// it knows the term of the snapshot's last entry only while nothing is behind it
// in the log, and both would go in circles for ever: the leader back to the
// snapshot, which this server need not install, and on to the refused entries.
//
// Everything up to applied is committed, so every leader has the same there and
// nothing has to be compared. What of the request lies behind that is given to
// Raft as if the log began with it. The commit index must not go beyond what the
// request proves to be common: Raft would take the end of its own log for it.
func rebase(a *raft.AppendEntriesRequest, applied, first uint64) *raft.AppendEntriesRequest {
	if a.PrevLogEntry == 0 || a.PrevLogEntry > applied || first == 0 && a.PrevLogEntry == applied || first > 0 && a.PrevLogEntry >= first {
		return a
	}
	b := *a
	b.PrevLogEntry, b.PrevLogTerm = 0, 0
	for len(b.Entries) > 0 && b.Entries[0].Index <= applied {
		b.Entries = b.Entries[1:]
	}
	common := applied
	if n := len(b.Entries); n > 0 {
		common = b.Entries[n-1].Index
	}
	b.LeaderCommitIndex = min(b.LeaderCommitIndex, common)
	return &b
}

// rebased is what Raft is given of an RPC.
func (t *Transport) rebased(command any) any {
	if q, ok := command.(*raft.RequestVoteRequest); ok && t.cfg.View != nil {
		return admitted(q, t.cfg.View())
	}
	a, ok := command.(*raft.AppendEntriesRequest)
	if !ok || t.cfg.FirstIndex == nil || t.cfg.Applied == nil {
		return command
	}
	return rebase(a, t.cfg.Applied(), t.cfg.FirstIndex())
}

// admitted makes a request for a vote acceptable whose candidate has a newer log than
// this server and no vote in the configuration that this server knows.
//
// The candidate may have got its vote by an entry that was committed without this
// server. When the leader is gone for good, the candidate is the only one that can be
// elected. Raft refuses by the older configuration, unless the request names no
// candidate by its id. A vote depends on the term and the log alone (Raft, section 6:
// a server uses the newest configuration in its own log, and any server may vote).
// A server that was removed has no newer log than those that know of it.
func admitted(q *raft.RequestVoteRequest, v View) *raft.RequestVoteRequest {
	theirs := standing{Index: q.LastLogIndex, Term: q.LastLogTerm}
	if theirs.compare(v.standing()) <= 0 || slices.ContainsFunc(v.Config.Servers, func(s raft.Server) bool {
		return s.Suffrage == raft.Voter && string(s.ID) == string(q.ID)
	}) {
		return q
	}
	c := *q
	c.ID = nil
	return &c
}

package transport

import (
	"slices"

	"github.com/hashicorp/raft"
)

// rebase makes an AppendEntries acceptable if it starts before the first entry that this
// server still has.
//
// Such a request arrives if a leader has missed the answer to the entries that it sent
// after a snapshot: it resends them, or searches for the last common entry. Raft refuses
// it, because it knows the term of the snapshot's last entry only while the log has no
// entries after it. Both servers would then loop forever: the leader returns to the
// snapshot, which this server doesn't have to install, and then to the refused entries
// again.
//
// All entries up to applied are committed, so every leader has the same entries there,
// and we don't have to compare them. We pass only the entries after applied to Raft, as
// if the log began there. The commit index must not exceed the last entry that the
// request proves to be in both logs. Raft would use the end of its log instead.
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

// rebased returns the command to pass to Raft for an RPC.
func (r *relay) rebased(command any) any {
	if q, ok := command.(*raft.RequestVoteRequest); ok && r.cfg.View != nil {
		return admitted(q, r.cfg.View())
	}
	a, ok := command.(*raft.AppendEntriesRequest)
	if !ok || r.cfg.FirstIndex == nil || r.cfg.Applied == nil {
		return command
	}
	return rebase(a, r.cfg.Applied(), r.cfg.FirstIndex())
}

// admitted makes a vote request acceptable if the candidate has a newer log than this
// server and isn't a voter in the configuration that this server knows.
//
// The candidate may have become a voter by an entry that was committed without this server.
// If the leader is gone permanently, only the candidate can be elected. Raft refuses because
// of the older configuration, unless the request contains no candidate id, so we remove the
// id. A vote depends on the term and the log alone (Raft, section 6: a server uses the
// newest configuration in its own log, and any server may vote). A removed server doesn't
// have a newer log than the servers that know about its removal.
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

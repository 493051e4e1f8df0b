package peer

import "github.com/hashicorp/raft"

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
	a, ok := command.(*raft.AppendEntriesRequest)
	if !ok || t.cfg.FirstIndex == nil || t.cfg.Applied == nil {
		return command
	}
	return rebase(a, t.cfg.Applied(), t.cfg.FirstIndex())
}

package transport

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

// maxTermJump limits the distance of a message's term from this server's term. A term grows
// by one with every candidacy, at most every standingPause, so no ensemble gets this far in
// 40 years. A forged message can still raise the term by that much, which leaves room for
// four billion more.
const maxTermJump = 1 << 32

// checker checks messages of other servers against this server's state. rpc.Check has
// already checked the message itself.
//
// Invariants:
//   - Raft never gets an entry in place of a committed entry: it would replace the entry
//     and lose an acknowledged write.
//   - Raft never gets a second leader in a term: two servers could commit different
//     entries at one index.
//   - A message that is refused for another reason doesn't make its sender a leader.
//     Otherwise a stranger could lock out the real leader.
type checker struct {
	*instance
	leaders leaders // the leaders that this server has heard from
}

// examine returns an error if a message breaks a rule.
func (k *checker) examine(from raft.ServerID, command any) error {
	if err := rpc.Check(from, command); err != nil {
		return err
	}
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		return k.examineEntries(from, c)
	case *raft.RequestVoteRequest:
		return k.examineTerm(c.Term)
	case *raft.RequestPreVoteRequest:
		return k.examineTerm(c.Term)
	case *raft.InstallSnapshotRequest:
		if err := k.examineLeader(c.Term); err != nil {
			return err
		}
		return k.notedLeader(from, c.Term)
	}
	return nil
}

func (k *checker) standing() Standing {
	if k.cfg.Standing == nil {
		return Standing{}
	}
	return k.cfg.Standing()
}

// examineTerm refuses terms that no election can have reached.
func (k *checker) examineTerm(term uint64) error {
	if now := k.standing().Term; term > now && term-now > maxTermJump {
		return rpc.Breaks("a term impossibly far ahead", "%d, this server is in term %d", term, now)
	}
	return nil
}

// examineAnswer refuses an impossible term in an answer, which can end a leadership like
// the term of a request.
func (k *checker) examineAnswer(from raft.ServerID, term uint64) error {
	err := k.examineTerm(term)
	if err != nil {
		k.reject(from, err)
	}
	return err
}

// examineLeader refuses impossible terms, and a second leader in the term that this
// server leads: Raft elects at most one per term.
func (k *checker) examineLeader(term uint64) error {
	if err := k.examineTerm(term); err != nil {
		return err
	}
	// Leads and Term aren't read at the same moment: trust them only if two readings
	// agree.
	if s := k.standing(); s.Leads && s.Term == term && k.standing() == s {
		return rpc.Breaks("a second leader of one term", "this server leads in term %d", term)
	}
	return nil
}

// notedLeader records the sender of a message that has passed all other checks as the
// leader of a term, and refuses a second leader.
func (k *checker) notedLeader(from raft.ServerID, term uint64) error {
	if leader := k.leaders.leads(from, term); leader != from {
		return rpc.Breaks("a second leader of one term", "%s leads in term %d", leader, term)
	}
	return nil
}

// examineEntries checks that the entries can be applied, and that none replaces a
// committed entry. It lowers the commit index to the last entry that the message proves
// to be in both logs. Raft would use the end of this server's log instead.
func (k *checker) examineEntries(from raft.ServerID, a *raft.AppendEntriesRequest) error {
	if err := k.examineLeader(a.Term); err != nil {
		return err
	}
	for _, l := range a.Entries {
		if k.cfg.CheckEntry == nil {
			break
		}
		if err := k.cfg.CheckEntry(l); err != nil {
			return rpc.Breaks("an entry that cannot be applied", "entry %d: %v", l.Index, err)
		}
	}
	a.LeaderCommitIndex = min(a.LeaderCommitIndex, a.PrevLogEntry+uint64(len(a.Entries)))
	if err := k.examineCommitted(a); err != nil {
		return err
	}
	return k.notedLeader(from, a.Term)
}

// examineCommitted refuses entries that would replace committed ones: the leader of this
// server's term, or of a later term, has all committed entries. A leader that has been
// replaced and doesn't know it yet may lack some; Raft answers it with its term.
func (k *checker) examineCommitted(a *raft.AppendEntriesRequest) error {
	s := k.standing()
	if k.cfg.TermOf == nil || a.PrevLogEntry >= s.Committed || a.Term < s.Term {
		return nil
	}
	for _, l := range a.Entries {
		if l.Index > s.Committed {
			break
		}
		if term, ok := k.cfg.TermOf(l.Index); ok && term != l.Term {
			return rpc.Breaks("an entry that would replace a committed one", "entry %d of term %d, committed is one of term %d", l.Index, l.Term, term)
		}
	}
	return nil
}

// reject notes a message that broke a rule. It returns false if the stream just ended.
func (k *checker) reject(from raft.ServerID, err error) bool {
	var net net.Error
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &net) {
		return false
	}
	rule := "a message that cannot be read"
	if r := (*rpc.RuleError)(nil); errors.As(err, &r) {
		rule = r.Rule
	}
	k.cfg.Hub.Reject(string(from), rule, err)
	return true
}

// leaders remembers the server that sent entries or a snapshot in the newest term for
// which any server did. We can't use Raft's own LeaderWithID: if Raft handles a heartbeat
// of the old leader while it changes to the term of a new one, it keeps the old leader's
// name with the new term until a message of the new leader arrives.
type leaders struct {
	mu   sync.Mutex
	term uint64
	id   raft.ServerID // empty: no server has
}

// leads notes that a server sends as the leader of term, and returns the server that did
// so first in that term: id itself if no other did.
func (l *leaders) leads(id raft.ServerID, term uint64) raft.ServerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term > l.term {
		l.term, l.id = term, id
	}
	if term == l.term {
		return l.id
	}
	return id
}

func (l *leaders) newest() raft.ServerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

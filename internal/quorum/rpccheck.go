package quorum

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// Raft trusts its input: a message that no correct server sends may crash the process,
// destroy the ensemble, or replace committed entries. We therefore check each message
// before Raft sees it, and close a stream that delivers an invalid one. A correct server
// never sends what these rules refuse; the comment of each rule explains why.

// ruleError names the rule that a message breaks. The rule is a constant, so that we count
// equal violations together; the detail is not.
type ruleError struct {
	rule   string
	detail string
}

func (e *ruleError) Error() string {
	if e.detail == "" {
		return e.rule
	}
	return e.rule + ": " + e.detail
}

func breaks(rule, detail string, args ...any) error {
	return &ruleError{rule, fmt.Sprintf(detail, args...)}
}

const (
	// maxTermJump is how far the term of a message may be ahead of this server's. A term
	// grows by one with every candidacy, and a candidate stands again after standingPause
	// at the earliest. 2^32 consecutive candidacies take 40 years, so no peer of a server
	// that was away for any time is further ahead. A forged message can still raise the
	// term by that much, which leaves room for four billion more.
	maxTermJump = 1 << 32
	// maxIndex bounds indexes, so that no sum of them overflows.
	maxIndex = 1 << 62
	// maxSnapshot bounds the announced size of a snapshot: 16 TiB.
	maxSnapshot = 1 << 44
)

// Standing is a server's state, available without waiting.
type Standing struct {
	Committed uint64 // index of the newest entry known to be committed
	Leads     bool   // this server leads
	Term      uint64 // read after the other fields: all committed entries were committed in it or before
}

// examine returns an error if a message breaks a rule.
func (t *Transport) examine(from raft.ServerID, command any) error {
	if err := checkSender(from, command); err != nil {
		return err
	}
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		return t.examineEntries(from, c)
	case *raft.RequestVoteRequest:
		return t.examineCandidate(c.Term, c.LastLogTerm, c.LastLogIndex)
	case *raft.RequestPreVoteRequest:
		return t.examineCandidate(c.Term, c.LastLogTerm, c.LastLogIndex)
	case *raft.InstallSnapshotRequest:
		return t.examineSnapshot(from, c)
	}
	return nil
}

// checkSender checks that a message comes from the server that the handshake of its
// stream has identified. Every field that names the sender must name that server.
func checkSender(from raft.ServerID, command any) error {
	h := command.(raft.WithRPCHeader).GetRPCHeader()
	if h.ProtocolVersion < raft.ProtocolVersionMax-1 || h.ProtocolVersion > raft.ProtocolVersionMax {
		return breaks("a version of Raft's protocol that this server does not speak", "%d", h.ProtocolVersion)
	}
	var named []byte
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		named = c.Leader
	case *raft.RequestVoteRequest:
		named = c.Candidate
	case *raft.InstallSnapshotRequest:
		named = c.Leader
	}
	if string(h.ID) != string(from) || string(h.Addr) != string(from) || len(named) > 0 && string(named) != string(from) {
		return breaks("a message in the name of another server", "%.64q, %.64q, %.64q", h.ID, h.Addr, named)
	}
	return nil
}

func (t *Transport) standing() Standing {
	if t.cfg.Standing == nil {
		return Standing{}
	}
	return t.cfg.Standing()
}

// examineTerm refuses terms that no election can have reached.
func (t *Transport) examineTerm(term uint64) error {
	if now := t.standing().Term; term > now && term-now > maxTermJump {
		return breaks("a term absurdly far ahead", "%d, this server is in term %d", term, now)
	}
	return nil
}

// examineAnswer refuses an impossible term in an answer, which can end a leadership like
// the term of a request.
func (t *Transport) examineAnswer(from raft.ServerID, term uint64) error {
	err := t.examineTerm(term)
	if err != nil {
		t.reject(from, err)
	}
	return err
}

// leaders remembers the server that sent entries or a snapshot in the newest term for which
// any server did. We can't use Raft's own LeaderWithID: if Raft handles a heartbeat of the
// old leader while it changes to the term of a new one, it keeps the old leader's name with
// the new term until a message of the new leader replaces it.
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

// examineLeader refuses impossible terms, and a second leader in the term that this
// server leads: Raft elects at most one per term.
func (t *Transport) examineLeader(term uint64) error {
	if term == 0 {
		return breaks("a leader in term 0", "")
	}
	if err := t.examineTerm(term); err != nil {
		return err
	}
	// We don't read Leads and Term at the same time, so we trust them only if two readings
	// agree.
	if s := t.standing(); s.Leads && s.Term == term && t.standing() == s {
		return breaks("a second leader of one term", "this server leads in term %d", term)
	}
	return nil
}

// notedLeader records the sender of a message that has passed all other checks as the
// leader of a term, and refuses a second one.
func (t *Transport) notedLeader(from raft.ServerID, term uint64) error {
	if leader := t.leaders.leads(from, term); leader != from {
		return breaks("a second leader of one term", "%s leads in term %d", leader, term)
	}
	return nil
}

func (t *Transport) examineCandidate(term, lastTerm, lastIndex uint64) error {
	// A candidate's term is one more than any term that it has known.
	if lastTerm >= term || lastIndex > maxIndex || lastTerm == 0 && lastIndex > 0 {
		return breaks("a candidate whose log cannot be", "term %d, last entry %d of term %d", term, lastIndex, lastTerm)
	}
	return t.examineTerm(term)
}

// examineEntries checks that the entries are consecutive and follow the previous entry,
// that each can be applied, and that none replaces a committed one. We reduce the commit
// index to what the message proves to be common: Raft would use the end of this server's
// log instead.
func (t *Transport) examineEntries(from raft.ServerID, a *raft.AppendEntriesRequest) error {
	if err := t.examineLeader(a.Term); err != nil {
		return err
	}
	if a.PrevLogEntry > maxIndex || a.PrevLogTerm > a.Term || (a.PrevLogEntry == 0) != (a.PrevLogTerm == 0) {
		return breaks("an entry before the entries that cannot be", "entry %d of term %d, in term %d", a.PrevLogEntry, a.PrevLogTerm, a.Term)
	}
	index, term := a.PrevLogEntry, a.PrevLogTerm
	for _, l := range a.Entries {
		if l.Index != index+1 || l.Term < max(term, 1) || l.Term > a.Term {
			return breaks("entries that do not follow one another", "entry %d of term %d after entry %d of term %d, in term %d",
				l.Index, l.Term, index, term, a.Term)
		}
		if err := t.examineEntry(l); err != nil {
			return err
		}
		index, term = l.Index, l.Term
	}
	a.LeaderCommitIndex = min(a.LeaderCommitIndex, index)
	if err := t.examineCommitted(a); err != nil {
		return err
	}
	return t.notedLeader(from, a.Term)
}

// examineEntry checks that we can apply an entry: otherwise it would stop every server that
// has it.
func (t *Transport) examineEntry(l *raft.Log) error {
	switch l.Type {
	case raft.LogCommand:
	case raft.LogNoop, raft.LogBarrier:
		if len(l.Data) > 0 {
			return breaks("an entry with data that its type does not have", "entry %d: %v", l.Index, l.Type)
		}
	case raft.LogConfiguration:
		if err := checkConfiguration(l.Data); err != nil {
			return breaks("a configuration that is none", "entry %d: %v", l.Index, err)
		}
	default:
		return breaks("an entry of a type that no server writes", "entry %d: %v", l.Index, l.Type)
	}
	if t.cfg.CheckEntry != nil {
		if err := t.cfg.CheckEntry(l); err != nil {
			return breaks("an entry that cannot be applied", "entry %d: %v", l.Index, err)
		}
	}
	return nil
}

// examineCommitted refuses entries that would replace committed ones: the leader of this
// server's term, or of a later one, has all committed entries. A leader that has been
// replaced and doesn't know it yet may lack some; Raft answers it with its term.
func (t *Transport) examineCommitted(a *raft.AppendEntriesRequest) error {
	s := t.standing()
	committed := s.Committed
	if t.cfg.TermOf == nil || a.PrevLogEntry >= committed || a.Term < s.Term {
		return nil
	}
	for _, l := range a.Entries {
		if l.Index > committed {
			break
		}
		if term, ok := t.cfg.TermOf(l.Index); ok && term != l.Term {
			return breaks("an entry in the place of a committed one", "entry %d of term %d, committed is one of term %d", l.Index, l.Term, term)
		}
	}
	return nil
}

func (t *Transport) examineSnapshot(from raft.ServerID, q *raft.InstallSnapshotRequest) error {
	if err := t.examineLeader(q.Term); err != nil {
		return err
	}
	switch {
	case q.SnapshotVersion != raft.SnapshotVersionMax:
		return breaks("a snapshot of a version that no server sends", "%d", q.SnapshotVersion)
	case q.Size < 0 || q.Size > maxSnapshot:
		return breaks("a snapshot of an impossible size", "%d bytes", q.Size)
	case q.LastLogIndex == 0 || q.LastLogIndex > maxIndex || q.LastLogTerm == 0 || q.LastLogTerm > q.Term || q.ConfigurationIndex > q.LastLogIndex:
		return breaks("a snapshot that ends nowhere", "at entry %d of term %d, its configuration at entry %d, in term %d",
			q.LastLogIndex, q.LastLogTerm, q.ConfigurationIndex, q.Term)
	}
	if err := checkConfiguration(q.Configuration); err != nil {
		return breaks("a configuration that is none", "of a snapshot: %v", err)
	}
	return t.notedLeader(from, q.Term)
}

// checkConfiguration checks a configuration as encoded by raft.EncodeConfiguration.
// raft.DecodeConfiguration panics if it can't decode its input.
func checkConfiguration(b []byte) (err error) {
	if len(b) > maxConfiguration {
		return fmt.Errorf("%d bytes, the limit is %d", len(b), maxConfiguration)
	}
	under := bytes.NewReader(b)
	d := reader{r: bufio.NewReaderSize(under, 512)}
	conf := d.configuration()
	switch {
	case d.err != nil:
		return d.err
	case under.Len()+d.r.Buffered() > 0:
		return fmt.Errorf("%d bytes after its end", under.Len()+d.r.Buffered())
	}
	if err := consistent(conf); err != nil {
		return err
	}
	defer func() {
		if recover() != nil {
			err = errors.New("Raft cannot decode it")
		}
	}()
	raft.DecodeConfiguration(b)
	return nil
}

// consistent checks what Raft requires of a configuration before it writes it.
func consistent(conf raft.Configuration) error {
	ids, addrs, voters := make(map[raft.ServerID]bool), make(map[raft.ServerAddress]bool), 0
	for _, s := range conf.Servers {
		if s.ID == "" || s.Address == "" || ids[s.ID] || addrs[s.Address] {
			return fmt.Errorf("server %.64q at %.64q is listed twice or is incomplete", s.ID, s.Address)
		}
		if s.Suffrage > raft.Staging {
			return fmt.Errorf("server %.64q has suffrage %d", s.ID, s.Suffrage)
		}
		ids[s.ID], addrs[s.Address] = true, true
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters == 0 {
		return errors.New("it has no voter")
	}
	return nil
}

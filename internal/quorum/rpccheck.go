package quorum

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// Raft trusts what it is given: a message that no correct server sends may end
// the process, end the ensemble, or replace what was committed. So each message
// is checked before Raft sees it, and the stream of one that fails is closed. A
// correct server never sends what is refused here; the comment of each rule says
// why.

// ruleError says which rule a message breaks. The rule is a constant, so that
// equal offences are counted together; the detail is not.
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
	// maxTermJump is how far the term of a message may be ahead of this server's.
	// A term grows by one with every candidacy, and a candidate stands again at the
	// earliest after standingPause. 2^32 candidacies in a row take 40 years, so a
	// server that was away for any time knows no peer that is further ahead. A
	// false message can still raise the term by that much, which leaves room for
	// four billion more.
	maxTermJump = 1 << 32
	// maxIndex bounds indexes, so that no sum of them overflows.
	maxIndex = 1 << 62
	// maxSnapshot bounds the announced size of a snapshot: 16 TiB.
	maxSnapshot = 1 << 44
)

// Standing is what a server knows without waiting for anything.
type Standing struct {
	Committed uint64 // index of the newest entry that is known to be committed
	Leads     bool   // this server leads
	Term      uint64 // read after the others: what is committed was committed in it or before
}

// examine returns the rule of Raft that a message breaks.
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

// checkSender checks that a message speaks for the server that the handshake of
// its stream has identified. Every field that names the sender names that server.
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

// examineAnswer refuses the term of an answer, which ends a leadership like that
// of a message.
func (t *Transport) examineAnswer(from raft.ServerID, term uint64) error {
	err := t.examineTerm(term)
	if err != nil {
		t.reject(from, err)
	}
	return err
}

// leaders remembers which server sent entries or a snapshot in the newest term in
// which any did. Raft's own LeaderWithID does not tell: a heartbeat of the old leader
// that is handled while Raft goes to the term of a new one leaves the old leader's
// name beside the new term, until a message of the new leader replaces it.
type leaders struct {
	mu   sync.Mutex
	term uint64
	id   raft.ServerID // empty: none has
}

// leads notes that a server sends as the leader of a term, and returns the server
// that did so before in the same term, itself if none.
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

// examineLeader refuses terms that cannot be, and a second leader where this server
// leads: Raft elects one in a term at most.
func (t *Transport) examineLeader(term uint64) error {
	if term == 0 {
		return breaks("a leader in term 0", "")
	}
	if err := t.examineTerm(term); err != nil {
		return err
	}
	// Whether it leads and its term are not read at the same moment: what both readings
	// say holds.
	if s := t.standing(); s.Leads && s.Term == term && t.standing() == s {
		return breaks("a second leader of one term", "this server leads in term %d", term)
	}
	return nil
}

// notedLeader notes the sender of a message that has passed every other check as the
// leader of a term, and refuses the second one.
func (t *Transport) notedLeader(from raft.ServerID, term uint64) error {
	if leader := t.leaders.leads(from, term); leader != from {
		return breaks("a second leader of one term", "%s leads in term %d", leader, term)
	}
	return nil
}

func (t *Transport) examineCandidate(term, lastTerm, lastIndex uint64) error {
	// A candidate's term is one more than any that it has known.
	if lastTerm >= term || lastIndex > maxIndex || lastTerm == 0 && lastIndex > 0 {
		return breaks("a candidate whose log cannot be", "term %d, last entry %d of term %d", term, lastIndex, lastTerm)
	}
	return t.examineTerm(term)
}

// examineEntries checks that the entries follow one another and the entry before
// them, that each can be applied, and that none replaces a committed one. The
// commit index is cut to what the message proves to be common: Raft would take
// the end of this server's log for it.
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

// examineEntry checks that an entry can be applied: one that cannot be would stop
// every server that has it.
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

// examineCommitted refuses entries in the place of committed ones: the leader of
// this server's term, or of a later one, has all that are committed. A leader that has
// been replaced and does not know it yet may lack some; Raft answers it with its term.
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

// checkConfiguration checks a configuration as raft.EncodeConfiguration encodes
// it. raft.DecodeConfiguration panics on what it cannot decode.
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

// consistent is what Raft demands of a configuration before it writes it.
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

package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// A stream that delivers an invalid message is closed. A correct server never breaks
// these rules; the comment of each rule gives the reason.

// RuleError names the rule that a message breaks. The rule is a constant, so that equal
// violations are counted together; the detail varies.
type RuleError struct {
	Rule   string
	detail string
}

func (e *RuleError) Error() string {
	if e.detail == "" {
		return e.Rule
	}
	return e.Rule + ": " + e.detail
}

// Breaks returns a RuleError.
func Breaks(rule, detail string, args ...any) error {
	return &RuleError{rule, fmt.Sprintf(detail, args...)}
}

const (
	// maxIndex limits indexes, so that no sum of indexes overflows.
	maxIndex = 1 << 62
	// maxSnapshot bounds the announced size of a snapshot: 16 TiB.
	maxSnapshot = 1 << 44
)

// Check returns an error if a message from a server breaks a rule, whatever the state of
// this server.
func Check(from raft.ServerID, command any) error {
	if err := checkSender(from, command); err != nil {
		return err
	}
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		return checkEntries(c)
	case *raft.RequestVoteRequest:
		return checkCandidate(c.Term, c.LastLogTerm, c.LastLogIndex)
	case *raft.RequestPreVoteRequest:
		return checkCandidate(c.Term, c.LastLogTerm, c.LastLogIndex)
	case *raft.InstallSnapshotRequest:
		return checkSnapshot(c)
	}
	return nil
}

// checkSender checks that a message comes from the server that the handshake of its
// stream has identified. Every field that names the sender must name that server.
func checkSender(from raft.ServerID, command any) error {
	h := command.(raft.WithRPCHeader).GetRPCHeader()
	if h.ProtocolVersion < raft.ProtocolVersionMax-1 || h.ProtocolVersion > raft.ProtocolVersionMax {
		return Breaks("a version of Raft's protocol that this server does not speak", "%d", h.ProtocolVersion)
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
		return Breaks("a message in the name of another server", "%.64q, %.64q, %.64q", h.ID, h.Addr, named)
	}
	return nil
}

// checkConfiguration checks a configuration as encoded by raft.EncodeConfiguration.
// raft.DecodeConfiguration panics if it can't decode its input.
func checkConfiguration(b []byte) (err error) {
	if len(b) > maxConfiguration {
		return fmt.Errorf("%d bytes, the limit is %d", len(b), maxConfiguration)
	}
	under := bytes.NewReader(b)
	d := Reader{r: bufio.NewReaderSize(under, 512)}
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

// consistent makes the checks that Raft makes before it writes a configuration.
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

// checkTermOfLeader refuses term 0, in which no server leads.
func checkTermOfLeader(term uint64) error {
	if term == 0 {
		return Breaks("a leader in term 0", "")
	}
	return nil
}

// checkEntries checks that the entries are consecutive and follow the previous entry.
func checkEntries(a *raft.AppendEntriesRequest) error {
	if err := checkTermOfLeader(a.Term); err != nil {
		return err
	}
	if a.PrevLogEntry > maxIndex || a.PrevLogTerm > a.Term || (a.PrevLogEntry == 0) != (a.PrevLogTerm == 0) {
		return Breaks("an impossible previous entry", "entry %d of term %d, in term %d", a.PrevLogEntry, a.PrevLogTerm, a.Term)
	}
	index, term := a.PrevLogEntry, a.PrevLogTerm
	for _, l := range a.Entries {
		if l.Index != index+1 || l.Term < max(term, 1) || l.Term > a.Term {
			return Breaks("entries that do not follow one another", "entry %d of term %d after entry %d of term %d, in term %d",
				l.Index, l.Term, index, term, a.Term)
		}
		if err := checkEntry(l); err != nil {
			return err
		}
		index, term = l.Index, l.Term
	}
	return nil
}

// checkEntry checks that Raft can apply an entry: an entry that it can't apply would stop
// every server that has it.
func checkEntry(l *raft.Log) error {
	switch l.Type {
	case raft.LogCommand:
	case raft.LogNoop, raft.LogBarrier:
		if len(l.Data) > 0 {
			return Breaks("an entry with data that its type does not have", "entry %d: %v", l.Index, l.Type)
		}
	case raft.LogConfiguration:
		if err := checkConfiguration(l.Data); err != nil {
			return Breaks("an invalid configuration", "entry %d: %v", l.Index, err)
		}
	default:
		return Breaks("an entry of a type that no server writes", "entry %d: %v", l.Index, l.Type)
	}
	return nil
}

func checkCandidate(term, lastTerm, lastIndex uint64) error {
	// A candidate's term is one more than any term that it has known.
	if lastTerm >= term || lastIndex > maxIndex || lastTerm == 0 && lastIndex > 0 {
		return Breaks("a candidate with an impossible log", "term %d, last entry %d of term %d", term, lastIndex, lastTerm)
	}
	return nil
}

func checkSnapshot(q *raft.InstallSnapshotRequest) error {
	if err := checkTermOfLeader(q.Term); err != nil {
		return err
	}
	switch {
	case q.SnapshotVersion != raft.SnapshotVersionMax:
		return Breaks("a snapshot of a version that no server sends", "%d", q.SnapshotVersion)
	case q.Size < 0 || q.Size > maxSnapshot:
		return Breaks("a snapshot of an impossible size", "%d bytes", q.Size)
	case q.LastLogIndex == 0 || q.LastLogIndex > maxIndex || q.LastLogTerm == 0 || q.LastLogTerm > q.Term || q.ConfigurationIndex > q.LastLogIndex:
		return Breaks("a snapshot with an impossible end", "at entry %d of term %d, its configuration at entry %d, in term %d",
			q.LastLogIndex, q.LastLogTerm, q.ConfigurationIndex, q.Term)
	}
	if err := checkConfiguration(q.Configuration); err != nil {
		return Breaks("an invalid configuration", "of a snapshot: %v", err)
	}
	return nil
}

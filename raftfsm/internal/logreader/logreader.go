package logreader

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tree"
)

// State is the content of a snapshot.
type State struct {
	Tree     *tree.Tree
	Sessions *session.Table
	Cluster  string // id of the ensemble, hexadecimal
	Level    uint32 // behaviour level that every server of the ensemble knows
	Index    uint64 // of the newest entry that it includes
	Config   []byte // text of /zookeeper/config; nil for a standalone server
	machine  *apply.Machine
}

// ReadSnapshot verifies the snapshot in a directory and loads it.
func ReadSnapshot(dir string) (*State, error) {
	f := raftlog.LookAtSnapshot(dir)
	return readSnapshot(&f)
}

func readSnapshot(f *raftlog.SnapshotFile) (*State, error) {
	s := newState(nil)
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := s.machine.Load(r); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Dir, err)
	}
	s.note()
	return s, nil
}

// newState returns the initial state of every history. Its machine reports the commands
// that it applies to shown, unless shown is nil.
func newState(shown *showing) *State {
	env := apply.Detached()
	if shown != nil {
		env.Handler = shown
	}
	m := apply.New(env, math.MaxInt, math.MaxInt64)
	return &State{machine: m, Tree: m.Tree, Sessions: m.Sessions}
}

func (s *State) note() {
	m := s.machine
	s.Cluster, s.Level, s.Index, s.Config = fmt.Sprintf("%x", m.Cluster), m.Level, m.Index, membership.ConfigText(m.Config)
}

// Entry describes one log entry.
type Entry struct {
	Index, Term uint64
	Type        EntryType
	Server      uint8     // EntryLeader: the new leader
	Voters      []uint64  // EntryMembers: the servers that have a vote from here on
	Time        time.Time // on the leader's clock; zero if the entry has none
	Bytes       int
	// Known reports that the state before the entry is known, so its transactions have
	// their zxids and results.
	Known bool
	// Skipped marks a batch that a deposed leader left in the log and that has no
	// effect. It is set only if the state is known.
	Skipped      bool
	Transactions []Transaction
}

// EntryType is the type of a log entry.
type EntryType string

// The types of log entries.
const (
	EntryLeader  EntryType = "leader"  // starts a leadership
	EntryBatch   EntryType = "batch"   // contains transactions
	EntryMembers EntryType = "members" // Raft's list of servers
	EntryRaft    EntryType = "raft"    // internal to Raft, without effect
)

// Transaction is one command of a log.
type Transaction struct {
	Kind    command.Kind
	Op      proto.Op
	Session int64
	Zxid    int64      // 0: none, or not known (see Entry.Known)
	Code    proto.Code // if the state is known
	Path    string     // of the created znode if the state is known, otherwise from the request
	Bytes   int        // of the data in the request
	Timeout int32      // of the session, in milliseconds
	Parts   []Transaction
}

// Files are the log and the snapshots of a server.
type Files struct {
	LogDir, SnapDir string
	Bolt            storage.Format // of a bolt log; nil: not included
}

// Read calls each for the entries of the log, in order, and returns the state at its end. It
// looks for the state before the log in at most so many snapshots, beginning with the newest.
// Without a known state, it returns nil.
func (f Files) Read(most int, each func(*Entry) error) (*State, error) {
	log, err := raftlog.LookAtLog(f.LogDir, f.Bolt)
	if err != nil {
		return nil, err
	}
	if len(log.Files) == 0 {
		return nil, datadir.ErrNoState
	}
	snapshots, err := raftlog.SnapshotFiles(f.SnapDir)
	if err != nil {
		return nil, err
	}
	return ReadEntries(log.Files, snapshots[:min(len(snapshots), most)], each)
}

// ReadEntries is Files.Read for files that were opened before, with the snapshots newest first.
func ReadEntries(files []raftlog.LogFile, snapshots []raftlog.SnapshotFile, each func(*Entry) error) (*State, error) {
	l := logReader{snapshots: snapshots, each: each}
	for i := range files {
		if err := l.start(files[i].First); err != nil {
			return nil, err
		}
		for e, err := range files[i].Entries() {
			if err == nil {
				err = l.entry(e)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if l.state != nil {
		l.state.note()
	}
	return l.state, nil
}

// logReader passes on the entries of a log.
type logReader struct {
	snapshots []raftlog.SnapshotFile // newest first
	each      func(*Entry) error
	state     *State // nil until the state is known
	next      uint64 // index of the entry after the state
	last      uint64 // index of the last entry passed on
	shown     showing
}

// start looks for the state before the first entry of the log.
func (l *logReader) start(first uint64) error {
	switch {
	case l.last != 0 || first == 0:
		return nil
	case first > 1:
		return l.load(first)
	}
	l.begin(newState(&l.shown))
	return nil
}

func (l *logReader) begin(s *State) {
	l.state = s
	l.next = s.machine.Index + 1
}

// entry passes on one entry.
func (l *logReader) entry(e *raft.Log) error {
	if l.last != 0 && e.Index != l.last+1 {
		return fmt.Errorf("log index %d is missing: %d follows %d", l.last+1, e.Index, l.last)
	}
	l.last = e.Index
	out := Entry{Index: e.Index, Term: e.Term, Bytes: len(e.Data), Type: EntryRaft}
	out.Known = l.state != nil && e.Index >= l.next
	switch e.Type {
	case raft.LogConfiguration:
		out.Type = EntryMembers
		for _, s := range raft.DecodeConfiguration(e.Data).Servers {
			if s.Suffrage == raft.Voter {
				out.Voters = append(out.Voters, membership.ServerOf(s.ID))
			}
		}
	case raft.LogCommand:
		if err := l.command(e, &out); err != nil {
			return fmt.Errorf("log index %d: %w", e.Index, err)
		}
	}
	return l.each(&out)
}

// load finds the oldest readable snapshot that the log continues, where the log starts at
// index. If there is none, there is no state. The check of the snapshot itself reports
// its damage.
func (l *logReader) load(index uint64) error {
	for i := len(l.snapshots) - 1; i >= 0; i-- {
		f := &l.snapshots[i]
		if f.Err != nil || f.Meta.Index+1 < index {
			continue
		}
		s := newState(&l.shown)
		r, err := f.Open()
		if err != nil {
			continue
		}
		if err = errors.Join(s.machine.Load(r), r.Close()); err == nil {
			l.begin(s)
			l.next = f.Meta.Index + 1
			return nil
		}
	}
	return nil
}

func (l *logReader) command(e *raft.Log, out *Entry) error {
	kind, err := command.EntryKind(e.Data)
	if err != nil {
		return err
	}
	out.Type = EntryBatch
	var h command.BatchHeader
	var runs []byte
	if kind == command.EntryLeaderStart {
		var s command.LeaderStart
		err = s.Decode(e.Data)
		out.Type, out.Server, out.Time = EntryLeader, s.Server, time.UnixMilli(s.Time)
	} else {
		runs, err = h.Decode(e.Data)
		out.Time = time.UnixMilli(h.Time)
	}
	switch {
	case err != nil:
		return err
	case !out.Known:
		return out.decode(runs)
	}
	m := l.state.machine
	out.Skipped = kind == command.EntryBatch && (h.Incarnation != m.Incarnation || h.Seq != m.Seq+1)
	l.shown.out, l.shown.reaped = out, nil
	if kind == command.EntryBatch && !out.Skipped {
		if err := eachCommand(runs, l.shown.noteReap); err != nil {
			return err
		}
	}
	return m.ApplyEntry(e.Index, e.Data)
}

// decode lists the commands of a batch with unknown effects.
func (e *Entry) decode(runs []byte) error {
	var q proto.Requests
	return eachCommand(runs, func(c *command.Command) {
		t := Transaction{Kind: c.Kind, Op: c.Op, Session: c.Session, Timeout: c.Timeout}
		t.describe(&q, c.Body)
		e.Transactions = append(e.Transactions, t)
	})
}

// eachCommand calls f for the commands of a batch, in order.
func eachCommand(runs []byte, f func(*command.Command)) error {
	for len(runs) > 0 {
		var r command.RunHeader
		commands, rest, err := r.Decode(runs)
		if err != nil {
			return err
		}
		runs = rest
		for range r.Count {
			var c command.Command
			if commands, err = c.Decode(commands); err != nil {
				return err
			}
			f(&c)
		}
	}
	return nil
}

// describe fills in the fields that come from the request.
func (t *Transaction) describe(q *proto.Requests, body []byte) {
	if t.Kind == command.KindReap {
		r := proto.NewReader(body)
		var reap tree.Reap
		reap.Decode(&r)
		t.Op, t.Path = proto.OpDeleteContainer, reap.Path
		return
	}
	if t.Kind != command.KindRequest {
		return
	}
	req, err := command.DecodeRequest(q, t.Op, append([]byte(nil), body...))
	if err != nil {
		return
	}
	if m, ok := req.(*proto.MultiRequest); ok {
		for _, op := range m.Ops {
			part := Transaction{Kind: command.KindRequest, Op: op.Op, Session: t.Session}
			part.request(op.Req)
			t.Parts = append(t.Parts, part)
		}
		return
	}
	t.request(req)
}

func (t *Transaction) request(req proto.Record) {
	t.Path, _ = proto.PathOf(req)
	switch r := req.(type) {
	case *proto.CreateRequest:
		t.Bytes = len(r.Data)
	case *proto.CreateTTLRequest:
		t.Bytes = len(r.Data)
	case *proto.SetDataRequest:
		t.Bytes = len(r.Data)
	}
}

// showing is the apply.Handler that records the effects of log entries.
type showing struct {
	q   proto.Requests
	out *Entry // the entry being applied
	// reaped has the bodies of the entry's reaps that are not applied yet, because an outcome
	// lacks them.
	reaped [][]byte
}

// noteReap notes the body of a command if it is a reap.
func (s *showing) noteReap(c *command.Command) {
	if c.Kind == command.KindReap {
		s.reaped = append(s.reaped, c.Body)
	}
}

// BatchDone implements apply.Handler.
func (*showing) BatchDone() {}

// Jumped implements apply.Handler.
func (*showing) Jumped() {}

// Applied implements apply.Handler.
func (s *showing) Applied(a *command.Applied) {
	t := Transaction{Kind: a.Kind, Op: a.Op, Session: a.Session, Zxid: a.Zxid, Code: a.Code}
	if a.Attached != nil {
		t.Timeout = a.Attached.Timeout
	}
	body := a.Body
	if a.Kind == command.KindReap && len(s.reaped) > 0 {
		body, s.reaped = s.reaped[0], s.reaped[1:]
	}
	t.describe(&s.q, body)
	if r := a.Result; r != nil {
		if r.Path != "" {
			t.Path = r.Path
		}
		for i := range min(len(r.Multi), len(t.Parts)) {
			t.Parts[i].Code = r.Multi[i].Code
			if p := r.Multi[i].Path; p != "" {
				t.Parts[i].Path = p
			}
		}
	}
	s.out.Transactions = append(s.out.Transactions, t)
}

package raftfsm

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
	"github.com/zkgo/zkgo/tree"
)

// Inspection of the files that servers leave on disk: snapshots as trees, logs as
// transactions. Nothing here opens a store or changes a file, so it is safe next to a
// running server.

// Place is what the files next to a log say about the server that wrote it.
type Place = datadir.Place

// PlaceFile is one of the files that say which server's state a directory holds.
type PlaceFile = datadir.PlaceFile

// ReadPlace checks the files that say which server's state the log directory of cfg
// holds, each alone and against the log and the snapshots. It only reads, and applies the
// checks that a server makes when it starts.
func (cfg Config) ReadPlace() (*Place, error) {
	log, err := raftlog.LookAtLog(cfg.LogDir, cfg.Bolt)
	if err != nil {
		return nil, err
	}
	snapshots, err := raftlog.SnapshotFiles(cfg.SnapDir)
	if err != nil {
		return nil, err
	}
	return datadir.ReadPlace(cfg.LogDir, &log, snapshots), nil
}

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
	s, err := newState(noHandler{})
	if err != nil {
		return nil, err
	}
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

// newState returns the state in which every history begins.
func newState(h Handler) (*State, error) {
	cfg, err := Config{ID: datadir.StandaloneServer, Memory: true, Handler: h}.withDefaults()
	if err != nil {
		return nil, err
	}
	n := newNode(cfg)
	n.machine.Post = func([]apply.Event) {}
	n.machine.Fleeting = false
	return &State{machine: n.machine, Tree: n.tree, Sessions: n.sessions}, nil
}

func (s *State) note() {
	m := s.machine
	s.Cluster, s.Level, s.Index, s.Config = fmt.Sprintf("%x", m.Cluster), m.Level, m.Index, membership.ConfigText(m.Config)
}

// Entry describes one log entry.
type Entry struct {
	Index, Term uint64
	Type        EntryType
	Server      uint8     // EntryLeader: the server that began to lead
	Voters      []uint64  // EntryMembers: the servers that have a vote from here on
	Time        time.Time // on the leader's clock; zero if the entry has none
	Bytes       int
	// Known says that the state before the entry is known, so its transactions have
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
	EntryLeader  EntryType = "leader"  // begins a leadership
	EntryBatch   EntryType = "batch"   // holds transactions
	EntryMembers EntryType = "members" // Raft's list of servers
	EntryRaft    EntryType = "raft"    // internal to Raft, without effect
)

// Transaction is one command of a log.
type Transaction struct {
	Kind    Kind
	Op      proto.Op
	Session int64
	Zxid    int64      // 0: none, or not known (see Entry.Known)
	Code    proto.Code // if the state is known
	Path    string     // of the created znode if the state is known, otherwise from the request
	Bytes   int        // of the data in the request
	Timeout int32      // of the session, in milliseconds
	Parts   []Transaction
}

// ReadLog calls each for the entries of the log in the directories of cfg, in order, and
// returns the state at its end. It stops at the first entry that it can't read. The
// state, and with it the zxids, is known from the oldest snapshot that the log continues,
// or from the beginning if the log starts there. Without either, the returned state is
// nil. Without a log, the error is ErrNoState.
func ReadLog(cfg Config, each func(*Entry) error) (*State, error) {
	return lookAtState(cfg, math.MaxInt, each)
}

// ReadState is ReadLog with the newest snapshot only, for a caller that wants no more
// than the state.
func ReadState(cfg Config) (*State, error) {
	return lookAtState(cfg, 1, func(*Entry) error { return nil })
}

// lookAtState reads the log in the directories of cfg, with at most so many snapshots.
func lookAtState(cfg Config, most int, each func(*Entry) error) (*State, error) {
	log, err := raftlog.LookAtLog(cfg.LogDir, cfg.Bolt)
	if err != nil {
		return nil, err
	}
	if len(log.Files) == 0 {
		return nil, ErrNoState
	}
	snapshots, err := raftlog.SnapshotFiles(cfg.SnapDir)
	if err != nil {
		return nil, err
	}
	return readEntries(log.Files, snapshots[:min(len(snapshots), most)], each)
}

func readEntries(files []raftlog.LogFile, snapshots []raftlog.SnapshotFile, each func(*Entry) error) (*State, error) {
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
	s, err := newState(&l.shown)
	if err == nil {
		l.begin(s)
	}
	return err
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

// load finds the oldest readable snapshot that the log continues, where the log begins
// at index. Without one there is no state. The check of the snapshot itself reports
// what is wrong with it.
func (l *logReader) load(index uint64) error {
	for i := len(l.snapshots) - 1; i >= 0; i-- {
		f := &l.snapshots[i]
		if f.Err != nil || f.Meta.Index+1 < index {
			continue
		}
		s, err := newState(&l.shown)
		if err != nil {
			return err
		}
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
	l.shown.out = out
	return m.ApplyEntry(e.Index, e.Data)
}

// decode lists the commands of a batch whose effects are unknown.
func (e *Entry) decode(runs []byte) error {
	var q proto.Requests
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
			t := Transaction{Kind: c.Kind, Op: c.Op, Session: c.Session, Timeout: c.Timeout}
			t.describe(&q, c.Body)
			e.Transactions = append(e.Transactions, t)
		}
	}
	return nil
}

// describe fills in what the request asks for.
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

// showing is the Handler that records the effects of log entries.
type showing struct {
	noHandler
	q   proto.Requests
	out *Entry // the entry being applied
}

// Applied implements Handler.
func (s *showing) Applied(a *Applied) {
	t := Transaction{Kind: a.Kind, Op: a.Op, Session: a.Session, Zxid: a.Zxid, Code: a.Code}
	if a.Attached != nil {
		t.Timeout = a.Attached.Timeout
	}
	t.describe(&s.q, a.Body)
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

package raftfsm

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
	"github.com/zkgo/zkgo/tree"
)

func TestMain(m *testing.M) { cost.Main(m) }

// patience is how long a test waits for an expected event.
const patience = 30 * time.Second

// outcome is a copy of an Applied.
type outcome struct {
	kind     command.Kind
	op       proto.Op
	session  int64
	zxid     int64
	code     proto.Code
	path     string
	stat     proto.Stat
	events   int
	body     string
	attached session.Session
	waited   bool
}

// waiter is a Waiter that receives the outcome.
type waiter chan outcome

func (w waiter) Applied(a *Applied) { w <- outcomeOf(a) }

// ignorant is a Waiter that ignores the outcome.
type ignorant struct{}

func (ignorant) Applied(*Applied) {}

// recorder is a Handler that records all calls.
type recorder struct {
	mu      sync.Mutex
	applied []outcome
	lost    []error
	jumped  int
	batches int
	states  []Status
	live    []int64
	change  chan struct{} // replaced and closed at every change
}

func newRecorder() *recorder { return &recorder{change: make(chan struct{})} }

func (r *recorder) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.change)
	r.change = make(chan struct{})
}

func outcomeOf(a *Applied) outcome {
	o := outcome{kind: a.Kind, op: a.Op, session: a.Session, zxid: a.Zxid, code: a.Code, events: len(a.Events), body: string(a.Body), waited: a.Waiter != nil}
	if a.Result != nil {
		o.path, o.stat = strings.Clone(a.Result.Path), a.Result.Stat
	}
	if a.Attached != nil {
		o.attached = *a.Attached
	}
	return o
}

func (r *recorder) Applied(a *Applied) {
	r.note(func() { r.applied = append(r.applied, outcomeOf(a)) })
	if a.Waiter != nil {
		a.Waiter.Applied(a)
	}
}

func (r *recorder) BatchDone()            { r.note(func() { r.batches++ }) }
func (r *recorder) Lost(reason error)     { r.note(func() { r.lost = append(r.lost, reason) }) }
func (r *recorder) Jumped()               { r.note(func() { r.jumped++ }) }
func (r *recorder) StateChanged(s Status) { r.note(func() { r.states = append(r.states, s) }) }
func (r *recorder) Live(dst []int64) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(dst, r.live...)
}

func (r *recorder) setLive(ids ...int64) { r.note(func() { r.live = ids }) }

// wait waits until cond returns true. cond is called under the recorder's lock.
func (r *recorder) wait(t testing.TB, what string, cond func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		r.mu.Lock()
		ok, change := cond(), r.change
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-change:
		case <-timeout:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// rig is a running Node with its recorder.
type rig struct {
	*Node
	*recorder
	t testing.TB
}

// memoryConfig and diskConfig return configurations of a standalone server.
func memoryConfig() Config {
	return Config{ID: 1, Memory: true, Policy: tree.ExtendedTypes}
}

func diskConfig(t testing.TB, kind raftlog.Kind) Config {
	t.Helper()
	dir := t.TempDir()
	return Config{ID: 1, Log: Log{Dir: dir + "/log", Store: string(kind), Bolt: boltlog.Format{}}, DataDir: dir + "/snap", Policy: tree.ExtendedTypes}
}

// eachStore runs f for every kind of store.
func eachStore(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("memory", func(t *testing.T) { t.Parallel(); f(t, memoryConfig()) })
	eachDisk(t, "disk", f)
}

// eachDisk runs f for every kind of store on disk.
func eachDisk(t *testing.T, name string, f func(t *testing.T, cfg Config)) {
	for _, kind := range cost.InShort([]raftlog.Kind{raftlog.WAL}, []raftlog.Kind{raftlog.WAL, raftlog.Bolt}) {
		t.Run(name+"/"+string(kind), func(t *testing.T) { t.Parallel(); f(t, diskConfig(t, kind)) })
	}
}

// start starts a server and waits until it is ready. The server is closed when the test
// ends.
func start(t testing.TB, cfg Config) *rig {
	t.Helper()
	r := &rig{recorder: newRecorder(), t: t}
	if cfg.Handler == nil {
		cfg.Handler = r.recorder
	}
	n, err := startNode(cfg)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	r.Node = n
	t.Cleanup(func() { n.Close() })
	r.awaitReady()
	return r
}

func (r *rig) awaitReady() {
	r.t.Helper()
	select {
	case <-r.Ready():
	case err := <-r.Err():
		r.t.Fatalf("the server stopped: %v", err)
	case <-time.After(patience):
		r.t.Fatal("the server does not get ready")
	}
}

// close closes the server; an error fails the test.
func (r *rig) close() {
	r.t.Helper()
	if err := r.Close(); err != nil {
		r.t.Fatalf("Close: %v", err)
	}
}

// send proposes c and returns the channel of its outcome.
func (r *rig) send(c command.Command) chan outcome {
	r.t.Helper()
	ch := make(chan outcome, 1)
	c.Waiter = waiter(ch)
	if err := r.Propose(&c); err != nil {
		r.t.Fatalf("Propose: %v", err)
	}
	return ch
}

// get waits for an outcome.
func (r *rig) get(ch chan outcome) outcome {
	r.t.Helper()
	select {
	case o := <-ch:
		return o
	case <-time.After(patience):
		r.t.Fatal("a command was not applied")
		return outcome{}
	}
}

// do proposes c and waits for its outcome.
func (r *rig) do(c command.Command) outcome {
	r.t.Helper()
	return r.get(r.send(c))
}

// attach creates a session.
func (r *rig) attach(timeout time.Duration) session.Session {
	r.t.Helper()
	o := r.do(command.Command{Kind: command.KindAttach, Timeout: int32(timeout.Milliseconds()), Password: [16]byte{1, 2, 3}})
	if o.code != proto.Ok || o.attached.ID == 0 {
		r.t.Fatalf("new session: %+v", o)
	}
	return o.attached
}

// reattach moves a session to a new connection.
func (r *rig) reattach(s session.Session) outcome {
	r.t.Helper()
	return r.do(command.Command{Kind: command.KindAttach, Session: s.ID, Timeout: s.Timeout, Password: s.Password})
}

// write returns a command of session s.
func write(s session.Session, op proto.Op, req proto.Record) command.Command {
	c := command.Command{Kind: command.KindRequest, Session: s.ID, Gen: s.Gen, Op: op, IDs: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}}
	if req != nil {
		c.Body = req.Append(nil)
	}
	return c
}

// The flags of create.
const (
	flagEphemeral  = 1
	flagSequential = 2
	flagContainer  = 4
)

func create(s session.Session, path string, flags int32) command.Command {
	return write(s, proto.OpCreate2, &proto.CreateRequest{Path: path, Data: []byte("data"), ACL: proto.OpenACL(), Flags: flags})
}

func set(s session.Session, path string, data []byte) command.Command {
	return write(s, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: data, Version: -1})
}

// exists reports whether a znode is in the tree.
func (r *rig) exists(path string) bool {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	return r.Tree().Get(path) != nil
}

// zxid returns the newest zxid.
func (r *rig) zxid() int64 {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	return r.Tree().LastZxid()
}

// dump returns the whole state as text.
func (r *rig) dump() string {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	var b strings.Builder
	if err := r.Tree().Dump(&b); err != nil {
		r.t.Fatal(err)
	}
	b.Write(r.Sessions().AppendTo(nil))
	return b.String()
}

// bufferSink is a raft.SnapshotSink that writes to a buffer.
type bufferSink struct{ bytes.Buffer }

func (*bufferSink) Close() error  { return nil }
func (*bufferSink) Cancel() error { return nil }
func (*bufferSink) ID() string    { return "" }

// startNode calls New and then Node.Start.
func startNode(cfg Config) (*Node, error) {
	n, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.Start(); err != nil {
		return nil, err
	}
	return n, nil
}

package raftfsm

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
	"github.com/zkgo/zkgo/tree"
)

// machineCopy is a state machine without a log: the test acts as the log.
type machineCopy struct {
	*apply.Machine
	*recorder
	node  *Node
	index uint64
	fault error
}

func newReplica(t testing.TB) *machineCopy {
	t.Helper()
	r := &machineCopy{recorder: newRecorder()}
	cfg := memoryConfig()
	cfg.Handler = r.recorder
	r.node = newNode(testConfig(t, cfg))
	r.Machine = r.node.replica.Machine
	r.Machine.Fleeting = false
	r.Machine.Fail = func(err error) { r.fault = err }
	return r
}

// feed applies one entry.
func (r *machineCopy) feed(entry []byte) error {
	r.index++
	return r.Machine.ApplyEntry(r.index, entry)
}

// mustFeed applies one valid entry.
func (r *machineCopy) mustFeed(t testing.TB, entry []byte) {
	t.Helper()
	if err := r.feed(entry); err != nil {
		t.Fatal(err)
	}
}

func (r *machineCopy) dump(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	if err := r.Tree.Dump(&b); err != nil {
		t.Fatal(err)
	}
	if err := r.Tree.Check(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "%x %d %x %q\n", r.Incarnation, r.Seq, r.Cluster, r.Config)
	b.Write(r.Sessions.AppendTo(nil))
	return b.String()
}

// leader writes entries as a leader would.
type leader struct {
	start command.LeaderStart
	seq   uint64
	first uint64 // number of the next command
	claim command.Check
}

func newLeader(incarnation uint64, flags uint8) *leader {
	return &leader{start: command.LeaderStart{Server: 2, Flags: flags, Incarnation: incarnation, Level: command.Level, Cluster: command.ClusterID{1}}, first: 1}
}

func (l *leader) begin() []byte { return l.start.Append(nil) }

// batch encodes commands of server 2.
func (l *leader) batch(cmds ...command.Command) []byte {
	l.seq++
	h := command.BatchHeader{Incarnation: l.start.Incarnation, Seq: l.seq, Time: int64(1000 * l.seq), Policy: tree.ExtendedTypes, Check: l.claim}
	b := h.Append(nil)
	body := []byte{}
	for i := range cmds {
		body = cmds[i].Append(body)
	}
	r := command.RunHeader{Server: 2, Nonce: 9, First: l.first, Count: uint32(len(cmds)), Size: uint32(len(body))}
	l.first += uint64(len(cmds))
	n := len(b)
	b = append(b, make([]byte, command.RunHeaderSize)...)
	r.Put(b[n:])
	return append(b, body...)
}

func attachCommand() command.Command {
	return command.Command{Kind: command.KindAttach, Timeout: 4000, Password: [16]byte{7}}
}

// firstSession is the session that the first attach of server 2 creates.
func firstSession() session.Session {
	return session.Session{ID: 2<<56 | 1, Gen: 1, Password: [16]byte{7}, Timeout: 4000}
}

func TestEpochs(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(5, 0)
	r.mustFeed(t, l.begin())
	if z := r.Tree.LastZxid(); z != 1<<32 {
		t.Fatalf("zxid %#x after the first leaderStart", z)
	}
	r.mustFeed(t, l.batch(attachCommand(), command.Command{Kind: command.KindSync}))
	l = newLeader(6, command.FlagConfig)
	l.start.Config = []byte("server.1=a:1:2:participant\nversion=0")
	r.mustFeed(t, l.begin())
	node := r.Tree.Get(tree.ConfigPath)
	var st proto.Stat
	node.Stat(&st)
	if r.Tree.LastZxid() != 2<<32 || st.Mzxid != 2<<32 || st.Version != -1 || !bytes.Equal(node.Data(), l.start.Config) {
		t.Fatalf("zxid %#x, config %q %+v", r.Tree.LastZxid(), node.Data(), st)
	}
	if last := r.recorder.applied[len(r.recorder.applied)-1]; last.op != proto.OpReconfig || last.events != 1 {
		t.Fatalf("a new config text was told as %+v", last)
	}
	told := len(r.recorder.applied)
	l = newLeader(7, 0)
	r.mustFeed(t, l.begin())
	if node.Stat(&st); st.Mzxid != 3<<32 || len(r.recorder.applied) != told {
		t.Fatalf("the config after another election: %+v", st)
	}
	l = newLeader(8, command.FlagStandalone)
	r.mustFeed(t, l.begin())
	if z := r.Tree.LastZxid(); z != 3<<32|1 || len(node.Data()) != 0 {
		t.Fatalf("a server alone, formerly a member, went to %#x with config %q", z, node.Data())
	}
	r.mustFeed(t, newLeader(9, command.FlagStandalone).begin())
	if z := r.Tree.LastZxid(); z != 3<<32|1 {
		t.Fatalf("a server alone went to %#x", z)
	}
}

// TestCounterOverflow: the epoch rises in the middle of a batch.
func TestCounterOverflow(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(5, command.FlagStandalone)
	r.mustFeed(t, l.begin())
	r.Tree.Advance(4<<32 | 0xffffffff - 3)
	s := firstSession()
	r.mustFeed(t, l.batch(attachCommand(), create(s, "/a", 0), create(s, "/a", 0), create(s, "/b", 0), create(s, "/c", 0)))
	var got []int64
	for _, o := range r.recorder.applied {
		got = append(got, o.zxid)
	}
	want := []int64{0x4_ffff_fffd, 0x4_ffff_fffe, 0x4_ffff_ffff, 5<<32 | 1, 5<<32 | 2}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("zxids %#x, want %#x", got, want)
	}
}

// TestStaleBatches: batches that a deposed leader left in the log, and batches after a
// missing one, change nothing and use up no zxid.
func TestStaleBatches(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	old := newLeader(5, command.FlagStandalone)
	r.mustFeed(t, old.begin())
	s := firstSession()
	r.mustFeed(t, old.batch(attachCommand()))
	lost := old.batch(create(s, "/lost", 0))
	behind := old.batch(create(s, "/late", 0))
	before := r.dump(t)
	r.mustFeed(t, behind)
	if r.dump(t) != before {
		t.Fatal("a batch after a lost one was executed")
	}
	r.mustFeed(t, lost)
	if r.exists("/late") || !r.exists("/lost") {
		t.Fatal("the next batch was not executed")
	}
	r.mustFeed(t, lost)
	next := newLeader(6, command.FlagStandalone)
	r.mustFeed(t, next.begin())
	before = r.dump(t)
	r.mustFeed(t, behind)
	r.mustFeed(t, lost)
	if r.dump(t) != before {
		t.Fatal("a batch of a deposed leader was executed")
	}
	r.mustFeed(t, next.batch(create(s, "/next", 0)))
	if !r.exists("/next") {
		t.Fatal("the new leader's batch was not executed")
	}
	if n := r.batches; n != 3 {
		t.Fatalf("BatchDone was called %d times", n)
	}
}

func (r *machineCopy) exists(path string) bool { return r.Tree.Get(path) != nil }

// TestUnusableEntries: any entry that can't be applied stops the server.
func TestUnusableEntries(t *testing.T) {
	t.Parallel()
	l := newLeader(5, command.FlagStandalone)
	begin := l.begin()
	future := *l
	future.start.Level = command.Level + 1
	foreign := *l
	foreign.start.Cluster = command.ClusterID{2}
	bad := create(firstSession(), "/a", 0)
	bad.Body = bad.Body[:len(bad.Body)-1]
	read := create(firstSession(), "/a", 0)
	read.Op = proto.OpGetData
	whole := l.batch(attachCommand())
	for name, entry := range map[string][]byte{
		"nothing": {}, "future format": {2, command.EntryBatch}, "future level": future.begin(), "foreign": foreign.begin(),
		"short body": first(l).batch(bad), "a read": first(l).batch(read),
		"cut": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0),
		"reap without body": first(l).batch(command.Command{Kind: command.KindReap}),
	} {
		r := newReplica(t)
		r.mustFeed(t, begin)
		if err := r.feed(entry); err == nil {
			t.Errorf("%s: it was applied", name)
		}
	}
}

// first returns l at its first batch.
func first(l *leader) *leader { c := *l; c.seq = 0; return &c }

// TestDivergence: a server stops if its state differs from the leader's.
func TestDivergence(t *testing.T) {
	t.Parallel()
	for _, diverge := range []bool{false, true} {
		lead, follow := newReplica(t), newReplica(t)
		l := newLeader(5, 0)
		s := firstSession()
		for _, e := range [][]byte{l.begin(), l.batch(attachCommand(), create(s, "/a", 0))} {
			lead.mustFeed(t, e)
			follow.mustFeed(t, e)
		}
		if diverge {
			follow.Sessions.Attach(s.ID, s.Password[:], 5000, 2)
			follow.SumRows()
		}
		var err error
		for range 3 {
			l.claim = lead.Claims.Last()
			e := l.batch(command.Command{Kind: command.KindSync})
			lead.mustFeed(t, e)
			if err = follow.feed(e); err != nil {
				break
			}
		}
		if (err != nil) != diverge {
			t.Fatalf("diverged: %v; the server says %v", diverge, err)
		}
	}
}

// TestDivergenceThatSkips: a server that wrongly treats the leader's batches as stale
// notices that, stops, and saves its state as evidence.
func TestDivergenceThatSkips(t *testing.T) {
	t.Parallel()
	lead, follow := newReplica(t), newReplica(t)
	dir := t.TempDir()
	cfg := memoryConfig()
	cfg.Memory, cfg.Log.Dir, cfg.DataDir, cfg.Handler = false, dir, dir, newRecorder()
	follow.Evidence = newNode(testConfig(t, cfg)).replica.Machine.Evidence
	l := newLeader(5, 0)
	for _, e := range [][]byte{l.begin(), l.batch(attachCommand(), create(firstSession(), "/a", 0))} {
		lead.mustFeed(t, e)
		follow.mustFeed(t, e)
	}
	follow.Seq++
	skipped := l.batch(create(firstSession(), "/b", 0))
	lead.mustFeed(t, skipped)
	follow.mustFeed(t, skipped)
	l.claim = lead.Claims.Last()
	err := follow.feed(l.batch(command.Command{Kind: command.KindSync}))
	path := filepath.Join(dir, "diverged.txt")
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("the server says %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"/a" kind=`, "session=0x200000000000001", "entry=3 incarnation=0x5 seq=2"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%q is not in\n%s", want, b)
		}
	}
	if strings.Contains(string(b), `"/b"`) {
		t.Error("the file shows what the server skipped")
	}
}

// randomLog returns a log of random commands of a few sessions, with elections.
func randomLog(rnd *rand.Rand, n int) [][]byte {
	l := newLeader(1, 0)
	log := [][]byte{l.begin()}
	gens := map[int64]uint64{}
	created := int64(0)
	for range n {
		if rnd.IntN(30) == 0 {
			number := l.first
			l = newLeader(rnd.Uint64(), 0)
			l.first = number
			log = append(log, l.begin())
		}
		var cmds []command.Command
		for range 1 + rnd.IntN(8) {
			s := firstSession()
			s.ID += rnd.Int64N(created + 1)
			s.Gen = max(1, gens[s.ID]-uint64(rnd.IntN(8)/7))
			path := fmt.Sprintf("/%d", rnd.IntN(20))
			switch rnd.IntN(9) {
			case 0:
				cmds = append(cmds, attachCommand())
				created++
			case 1:
				c := attachCommand()
				c.Session, c.Timeout = s.ID, rnd.Int32N(5000)
				gens[s.ID] = max(1, gens[s.ID]) + 1
				cmds = append(cmds, c)
			case 2:
				cmds = append(cmds, create(s, path, int32(rnd.IntN(4))))
			case 3:
				cmds = append(cmds, create(s, path+"/x", int32(rnd.IntN(4))))
			case 4:
				cmds = append(cmds, write(s, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1}))
			case 5:
				cmds = append(cmds, write(s, proto.OpCloseSession, nil))
			case 6:
				cmds = append(cmds, command.Command{Kind: command.KindExpire, Session: s.ID, Gen: s.Gen})
			default:
				cmds = append(cmds, set(s, path, make([]byte, rnd.IntN(30))))
			}
		}
		log = append(log, l.batch(cmds...))
	}
	return log
}

// TestReplicas applies random logs on two replicas, and restores one from a snapshot in
// between. They are equal at the end.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for seed := range cost.InShort[uint64](10, 40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		log := randomLog(rnd, 150)
		a, b := newReplica(t), newReplica(t)
		at := rnd.IntN(len(log))
		for i, e := range log {
			a.mustFeed(t, e)
			b.mustFeed(t, e)
			if i == at {
				c := newReplica(t)
				c.index = b.index
				c.restore(t, b.snapshot(t))
				b = c
			}
		}
		if x, y := a.dump(t), b.dump(t); x != y {
			t.Fatalf("seed %d, snapshot after entry %d:\n%s\nand\n%s", seed, at, x, y)
		}
		if a.Claims.Last() != b.Claims.Last() && at < len(log)-1 {
			t.Fatalf("seed %d: digests %+v and %+v", seed, a.Claims.Last(), b.Claims.Last())
		}
		if a.Tree.LastZxid() < 100 {
			t.Fatalf("seed %d: only zxid %#x: the log does too little", seed, a.Tree.LastZxid())
		}
	}
}

// snapshot returns the machine's snapshot in bytes.
func (r *machineCopy) snapshot(t testing.TB) []byte {
	t.Helper()
	img, err := r.Machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer img.Release()
	var b bufferSink
	if err := img.Persist(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (r *machineCopy) restore(t testing.TB, snapshot []byte) {
	t.Helper()
	r.Tree.Lock()
	defer r.Tree.Unlock()
	if err := r.Load(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotDamage flips bits and truncates: only the intact snapshot is accepted.
func TestSnapshotDamage(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	for _, e := range randomLog(rand.New(rand.NewPCG(3, 3)), 6) {
		r.mustFeed(t, e)
	}
	whole := r.snapshot(t)
	load := func(b []byte) error {
		c := newReplica(t)
		c.Tree.Lock()
		defer c.Tree.Unlock()
		return c.Load(bytes.NewReader(b))
	}
	if err := load(whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		if load(b) == nil {
			t.Fatalf("byte %d of %d is flipped unnoticed", i, len(whole))
		}
		if load(whole[:i]) == nil {
			t.Fatalf("%d of %d bytes are a snapshot", i, len(whole))
		}
	}
}

// TestRunTimeRestore: connections are dropped first, and the state only jumps forward.
func TestRunTimeRestore(t *testing.T) {
	t.Parallel()
	a, b := newReplica(t), newReplica(t)
	l := newLeader(5, 0)
	early := [][]byte{l.begin(), l.batch(attachCommand())}
	for _, e := range early {
		a.mustFeed(t, e)
		b.mustFeed(t, e)
	}
	old := a.snapshot(t)
	a.mustFeed(t, l.batch(create(firstSession(), "/a", 0)))
	waiting := attachCommand()
	waiting.Waiter = ignorant{}
	if err := b.node.Propose(&waiting); err != nil {
		t.Fatal(err)
	}
	if err := b.Machine.Restore(io.NopCloser(bytes.NewReader(a.snapshot(t)))); err != nil {
		t.Fatal(err)
	}
	if b.jumped != 1 || !b.exists("/a") || b.node.local.Lose() {
		t.Fatalf("jumped %d times", b.jumped)
	}
	if a.dump(t) != b.dump(t) {
		t.Fatal("the states differ")
	}
	c := newReplica(t)
	for _, e := range early {
		c.mustFeed(t, e)
	}
	if err := c.Machine.Restore(io.NopCloser(bytes.NewReader(old))); err == nil || c.fault == nil {
		t.Fatal("a snapshot of a state that was applied already was installed")
	}
}

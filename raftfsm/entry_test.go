package raftfsm

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/tree"
)

// commands returns commands of several kinds.
func commands() []command.Command {
	return []command.Command{
		{Kind: command.KindRequest, Session: 1<<56 | 3, Gen: 7, IDs: []proto.ID{{Scheme: "ip", ID: "::1"}, {Scheme: "digest", ID: "a:b"}}, Op: proto.OpSetData, Body: (&proto.SetDataRequest{Path: "/a"}).Append(nil)},
		{Kind: command.KindRequest, Session: 4, Gen: 1, Op: proto.OpSetData, IDs: []proto.ID{{Scheme: "ip", ID: "::1"}}, Prints: []tree.Fingerprint{{1, 15: 2}, {3}}, Body: (&proto.SetDataRequest{Path: "/b"}).Append(nil)},
		{Kind: command.KindRequest, Session: -1, Gen: 1, Op: proto.OpCloseSession, IDs: []proto.ID{}},
		{Kind: command.KindAttach, Timeout: 4000, Password: [16]byte{1, 15: 9}, IDs: []proto.ID{}},
		{Kind: command.KindSync, Session: 5, IDs: []proto.ID{}},
		{Kind: command.KindExpire, Session: 5, Gen: 2, IDs: []proto.ID{}},
		{Kind: command.KindReap, Op: proto.OpDeleteContainer, Body: (&tree.Reap{Path: "/c", Czxid: 4, Mzxid: 5}).Append(nil), IDs: []proto.ID{}},
	}
}

// encodeRun returns a run of server 2, built by LocalRuns.
func encodeRun(t testing.TB, cmds []command.Command) []byte {
	t.Helper()
	q := propose.NewLocalRuns(2, 99, propose.NewBacklog())
	for _, cmd := range cmds { // a copy, because propose changes it
		if err := q.Propose(&cmd, false); err != nil {
			t.Fatal(err)
		}
	}
	b, n := q.Take(nil, 0)
	if n != len(cmds) {
		t.Fatalf("%d commands in the run", n)
	}
	return b
}

func TestCommandRoundTrip(t *testing.T) {
	t.Parallel()
	want := commands()
	run := encodeRun(t, want)
	if n, err := propose.NewRemoteRuns(nil, new(command.Checkers)).CheckRun(2, run); err != nil || n != len(want) {
		t.Fatal(err)
	}
	var h command.RunHeader
	b, rest, err := h.Decode(append(run, "rest"...))
	if err != nil || string(rest) != "rest" || h.Count != uint32(len(want)) || h.First != 1 || h.Nonce != 99 || h.Server != 2 {
		t.Fatalf("%+v, rest %q, %v", h, rest, err)
	}
	for i := range want {
		var got command.Command
		if b, err = got.Decode(b); err != nil {
			t.Fatal(err)
		}
		if got.IDs == nil {
			got.IDs = []proto.ID{}
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("got  %+v\nwant %+v", got, want[i])
		}
		if n := want[i].Size(); len(want[i].Append(nil)) > n {
			t.Errorf("%v takes %d bytes, size says at most %d", want[i].Kind, len(want[i].Append(nil)), n)
		}
	}
}

func TestCheckRunRefuses(t *testing.T) {
	t.Parallel()
	run := encodeRun(t, commands())
	for n := range run {
		if _, err := propose.NewRemoteRuns(nil, new(command.Checkers)).CheckRun(2, run[:n]); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(run))
		}
	}
	if _, err := propose.NewRemoteRuns(nil, new(command.Checkers)).CheckRun(3, run); err == nil {
		t.Error("the run of another server was taken")
	}
	if _, err := propose.NewRemoteRuns(nil, new(command.Checkers)).CheckRun(2, append(bytes.Clone(run), 0)); err == nil {
		t.Error("a byte too many was taken")
	}
	bad := bytes.Clone(run)
	bad[command.RunHeaderSize] = 0xff
	if _, err := propose.NewRemoteRuns(nil, new(command.Checkers)).CheckRun(2, bad); err == nil {
		t.Error("an unknown kind was taken")
	}
	bad = bytes.Clone(run)
	bad[20]++ // count
	if _, err := propose.NewRemoteRuns(nil, new(command.Checkers)).CheckRun(2, bad); err == nil {
		t.Error("a wrong count was taken")
	}
}

// FuzzEntry applies arbitrary bytes. They must be applied or refused without a panic.
func FuzzEntry(f *testing.F) {
	s := command.LeaderStart{Server: 1, Incarnation: 1, Level: 1}
	f.Add(s.Append(nil))
	h := command.BatchHeader{Incarnation: 1, Seq: 1}
	f.Add(append(h.Append(nil), encodeRun(f, commands())...))
	f.Add(append(h.Append(nil), encodeRun(f, commands()[2:4])...))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := newNode(testConfig(t, memoryConfig()))
		n.replica.Machine.Incarnation = 1
		kind, err := command.EntryKind(b)
		err2 := n.replica.Machine.ApplyEntry(1, b)
		if err != nil && err2 == nil {
			t.Fatalf("an entry of kind %d was applied: %v", kind, err)
		}
		if err := n.Tree().Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func testConfig(t testing.TB, c Config) Config {
	t.Helper()
	if c.Handler == nil {
		c.Handler = newRecorder()
	}
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

package raftfsm

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// commands returns commands of several kinds.
func commands() []Command {
	return []Command{
		{Kind: KindRequest, Session: 1<<56 | 3, Gen: 7, IDs: []proto.ID{{Scheme: "ip", ID: "::1"}, {Scheme: "digest", ID: "a:b"}}, Op: proto.OpSetData, Body: (&proto.SetDataRequest{Path: "/a"}).Append(nil)},
		{Kind: KindRequest, Session: 4, Gen: 1, Op: proto.OpSetData, IDs: []proto.ID{{Scheme: "ip", ID: "::1"}}, Prints: []tree.Fingerprint{{1, 15: 2}, {3}}, Body: (&proto.SetDataRequest{Path: "/b"}).Append(nil)},
		{Kind: KindRequest, Session: -1, Gen: 1, Op: proto.OpCloseSession, IDs: []proto.ID{}},
		{Kind: KindAttach, Timeout: 4000, Password: [16]byte{1, 15: 9}, IDs: []proto.ID{}},
		{Kind: KindSync, Session: 5, IDs: []proto.ID{}},
		{Kind: KindExpire, Session: 5, Gen: 2, IDs: []proto.ID{}},
		{Kind: KindReap, Op: proto.OpDeleteContainer, Body: (&tree.Reap{Path: "/c", Czxid: 4, Mzxid: 5}).Append(nil), IDs: []proto.ID{}},
	}
}

// encodeRun returns a run of server 2, built by an intake.
func encodeRun(t testing.TB, cmds []Command) []byte {
	t.Helper()
	q := newIntake(2, 99, newBacklog())
	for _, cmd := range cmds { // a copy, because propose changes it
		if err := q.propose(&cmd, false); err != nil {
			t.Fatal(err)
		}
	}
	b, n := q.take(nil, 0)
	if n != len(cmds) {
		t.Fatalf("%d commands in the run", n)
	}
	return b
}

func TestCommandRoundTrip(t *testing.T) {
	t.Parallel()
	want := commands()
	run := encodeRun(t, want)
	if n, err := new(remoteRuns).checkRun(2, run); err != nil || n != len(want) {
		t.Fatal(err)
	}
	var h runHeader
	b, rest, err := h.decode(append(run, "rest"...))
	if err != nil || string(rest) != "rest" || h.count != uint32(len(want)) || h.first != 1 || h.nonce != 99 || h.server != 2 {
		t.Fatalf("%+v, rest %q, %v", h, rest, err)
	}
	for i := range want {
		var got Command
		if b, err = got.decode(b); err != nil {
			t.Fatal(err)
		}
		if got.IDs == nil {
			got.IDs = []proto.ID{}
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("got  %+v\nwant %+v", got, want[i])
		}
		if n := want[i].size(); len(want[i].append(nil)) > n {
			t.Errorf("%v takes %d bytes, size says at most %d", want[i].Kind, len(want[i].append(nil)), n)
		}
	}
}

func TestCheckRunRefuses(t *testing.T) {
	t.Parallel()
	run := encodeRun(t, commands())
	for n := range run {
		if _, err := new(remoteRuns).checkRun(2, run[:n]); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(run))
		}
	}
	if _, err := new(remoteRuns).checkRun(3, run); err == nil {
		t.Error("the run of another server was taken")
	}
	if _, err := new(remoteRuns).checkRun(2, append(bytes.Clone(run), 0)); err == nil {
		t.Error("a byte too many was taken")
	}
	bad := bytes.Clone(run)
	bad[runHeaderSize] = byte(kindEnd)
	if _, err := new(remoteRuns).checkRun(2, bad); err == nil {
		t.Error("an unknown kind was taken")
	}
	bad = bytes.Clone(run)
	bad[20]++ // count
	if _, err := new(remoteRuns).checkRun(2, bad); err == nil {
		t.Error("a wrong count was taken")
	}
}

// TestLayout pins the encoding, because later versions read the log.
func TestLayout(t *testing.T) {
	t.Parallel()
	s := leaderStart{server: 3, flags: flagStandalone | flagConfig, incarnation: 0x1122334455667788, time: 0x99, policy: 5, level: 1, cluster: clusterID{0xc1, 15: 0xc2}, config: []byte("cfg")}
	golden(t, "leaderStart", s.append(nil), "0101"+"03"+"03"+"1122334455667788"+"0000000000000099"+"00000005"+"00000001"+"c10000000000000000000000000000c2"+"00000003"+"636667")
	var back leaderStart
	if err := back.decode(s.append(nil)); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("%+v, %v", back, err)
	}
	h := batchHeader{incarnation: 0x1122334455667788, seq: 2, time: 3, policy: 4, check: check{5, 6}}
	golden(t, "batch", h.append(nil), "0102"+"1122334455667788"+"0000000000000002"+"0000000000000003"+"00000004"+"0000000000000005"+"0000000000000006")
	var hb batchHeader
	if runs, err := hb.decode(append(h.append(nil), 7)); err != nil || hb != h || !bytes.Equal(runs, []byte{7}) {
		t.Errorf("%+v, %v, %v", hb, runs, err)
	}
	c := Command{Kind: KindRequest, Session: 1, Gen: 2, IDs: []proto.ID{{Scheme: "s", ID: "i"}}, Op: -11, Body: []byte{8}}
	golden(t, "run", encodeRun(t, []Command{c}), "02"+"0000000000000063"+"0000000000000001"+"00000001"+"00000028"+
		"01"+"0000000000000001"+"0000000000000002"+"fffffff5"+"00000001"+"00000001"+"73"+"00000001"+"69"+"00000001"+"08")
	c = Command{Kind: KindRequest, Session: 1, Gen: 2, Prints: []tree.Fingerprint{{1, 15: 2}}, Op: 5}
	golden(t, "fingerprints", c.append(nil), "01"+"0000000000000001"+"0000000000000002"+"00000005"+"00010000"+"01000000000000000000000000000002"+"ffffffff")
	c = Command{Kind: KindAttach, Session: 1, Timeout: 4000, Password: [16]byte{15: 1}}
	golden(t, "attach", c.append(nil), "02"+"0000000000000001"+"0000000000000000"+"00000000"+"00000000"+"00000014"+"00000fa0"+"00000000000000000000000000000001")
}

func golden(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if hex.EncodeToString(got) != want {
		t.Errorf("%s is\n%x, want\n%s", what, got, want)
	}
}

func TestEntryKind(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{nil, {1}, {2, 1}, {0, 1}, {1, 0}, {1, 3}} {
		if k, err := entryKind(b); err == nil {
			t.Errorf("%v is of kind %d", b, k)
		}
	}
}

// FuzzEntry applies arbitrary bytes. They must be applied or refused without a panic.
func FuzzEntry(f *testing.F) {
	s := leaderStart{server: 1, incarnation: 1, level: 1}
	f.Add(s.append(nil))
	h := batchHeader{incarnation: 1, seq: 1}
	f.Add(append(h.append(nil), encodeRun(f, commands())...))
	f.Add(append(h.append(nil), encodeRun(f, commands()[2:4])...))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := newNode(testConfig(t, memoryConfig()))
		n.others = alone{n}
		n.machine.incarnation = 1
		kind, err := entryKind(b)
		err2 := n.machine.apply(1, b)
		if err != nil && err2 == nil {
			t.Fatalf("an entry of kind %d was applied: %v", kind, err)
		}
		if err := n.tree.Check(); err != nil {
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

package raftfsm

import (
	"bytes"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/snapio"
)

// applicableCommands returns commands of several kinds with valid bodies.
func applicableCommands() []command.Command {
	create := proto.CreateRequest{Path: "/a", Data: []byte("x"), ACL: proto.OpenACL()}
	return []command.Command{
		{Kind: command.KindAttach, Timeout: 4000, Password: [16]byte{1}},
		{Kind: command.KindRequest, Session: 1 << 56, Gen: 1, Op: proto.OpCreate, Body: create.Append(nil), IDs: []proto.ID{{Scheme: "world", ID: "anyone"}}},
		{Kind: command.KindSync, Session: 1},
		{Kind: command.KindExpire, Session: 9},
		{Kind: command.KindRaise, Body: []byte{0, 0, 0, 1}},
	}
}

// TestEntriesThatCannotBeApplied: the check accepts entries that can be applied, and
// refuses entries that can't, before they get into a log.
func TestEntriesThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	batch := func(commands ...command.Command) []byte {
		h := command.BatchHeader{Incarnation: 1, Seq: 1}
		return append(h.Append(nil), encodeRun(t, commands)...)
	}
	applicable := applicableCommands()
	start := command.LeaderStart{Server: 1, Incarnation: 1, Level: 1, Flags: command.FlagConfig, Config: []byte("server.1=a:1:2:participant\nversion=0")}
	foreign, unread := start, start
	foreign.Cluster = command.ClusterID{9}
	unread.Config = []byte("no list")
	named := start
	named.Config = namedConfig()
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"a leader's start":                   {start.Append(nil), true},
		"a start with a named line":          {named.Append(nil), true},
		"a membership with a named line":     {batch(command.Command{Kind: command.KindMembership, Body: proto.AppendBuffer(proto.AppendBuffer(nil, start.Config), named.Config)}), true},
		"of another ensemble":                {foreign.Append(nil), false},
		"with a list that is none":           {unread.Append(nil), false},
		"commands":                           {batch(applicable...), true},
		"junk":                               {[]byte("junk"), false},
		"nothing":                            {nil, false},
		"a run that is cut":                  {batch(applicable...)[:command.BatchHeaderSize+30], false},
		"bytes after the last run":           {append(batch(applicable...), 1), false},
		"a create without a body":            {batch(command.Command{Kind: command.KindRequest, Session: 1, Op: proto.OpCreate}), false},
		"a read":                             {batch(command.Command{Kind: command.KindRequest, Session: 1, Op: proto.OpGetData, Body: []byte{1}}), false},
		"a reap without a body":              {batch(command.Command{Kind: command.KindReap}), false},
		"a refusal with a code of its own":   {batch(command.Command{Kind: command.KindReconfigRefused, Body: []byte{0, 0, 0, 1}}), false},
		"a level of a byte":                  {batch(command.Command{Kind: command.KindRaise, Body: []byte{1}}), false},
		"a membership that is none":          {batch(command.Command{Kind: command.KindMembership, Body: proto.AppendBuffer(proto.AppendBuffer(nil, start.Config), []byte("x"))}), false},
		"a restore without an id":            {batch(command.Command{Kind: command.KindRestoreChunk, Body: []byte{1}}), false},
		"what is no command, and has a kind": {batch(command.Command{Kind: command.KindReconfigDone}), false},
	} {
		if err := testChecker().Entry(c.data, command.ClusterID{}); name != "of another ensemble" && (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err := testChecker().Entry(c.data, command.ClusterID{7}); name == "of another ensemble" && err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

// namedConfig returns the state of a membership in which a reconfig has named a line.
func namedConfig() []byte {
	return []byte("server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=100000002" + membership.NamedKey + "2")
}

// TestSnapshotWithNamedLines: a snapshot from after a reconfig passes the check.
func TestSnapshotWithNamedLines(t *testing.T) {
	t.Parallel()
	n := newNode(testConfig(t, memoryConfig()))
	s := command.LeaderStart{Server: 1, Incarnation: 1, Level: command.Level, Cluster: command.ClusterID{5}, Flags: command.FlagConfig, Config: namedConfig()}
	if err := n.replica.Machine.ApplyEntry(1, s.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(n.replica.Machine.Config, []byte(membership.NamedKey)) {
		t.Fatalf("the state is %q", n.replica.Machine.Config)
	}
	n.replica.Machine.Fleeting = false
	img, err := n.replica.Machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bufferSink
	if err := img.Persist(&b); err != nil {
		t.Fatal(err)
	}
	if err := apply.CheckSnapshot(n.replica.Identity.ClusterID(), &raft.InstallSnapshotRequest{LastLogIndex: 1}, &b); err != nil {
		t.Error(err)
	}
}

// FuzzEntryCheck: an entry that passes the check can be applied, unless a later version
// wrote it.
func FuzzEntryCheck(f *testing.F) {
	applicable := applicableCommands()
	s := command.LeaderStart{Server: 1, Incarnation: 1, Level: 1}
	f.Add(s.Append(nil))
	h := command.BatchHeader{Incarnation: 1, Seq: 1}
	f.Add(append(h.Append(nil), encodeRun(f, applicable)...))
	f.Add(append(h.Append(nil), encodeRun(f, []command.Command{{Kind: command.KindMembership, Body: make([]byte, 8)}})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if testChecker().Entry(b, command.ClusterID{}) != nil {
			return
		}
		n := newNode(testConfig(t, memoryConfig()))
		n.replica.Machine.Incarnation = 1
		n.replica.Machine.Newest = 1<<32 - 1
		if err := n.replica.Machine.ApplyEntry(1, b); err != nil {
			var h command.BatchHeader
			if _, derr := h.Decode(b); derr == nil && h.Check.Index != 0 {
				return // only apply compares the digest
			}
			t.Fatal(err)
		}
	})
}

// TestSnapshotsAreCheckedBefore: the check finds a snapshot that can't be restored, before
// the server discards its current state.
func TestSnapshotsAreCheckedBefore(t *testing.T) {
	t.Parallel()
	applicable := applicableCommands()
	n := newNode(testConfig(t, memoryConfig()))
	s := command.LeaderStart{Server: 1, Incarnation: 1, Level: 1, Cluster: command.ClusterID{5}}
	h := command.BatchHeader{Incarnation: 1, Seq: 1}
	for i, data := range [][]byte{s.Append(nil), append(h.Append(nil), encodeRun(t, applicable[:1])...)} {
		if err := n.replica.Machine.ApplyEntry(uint64(i+1), data); err != nil {
			t.Fatal(err)
		}
	}
	n.replica.Machine.Fleeting = false
	img, err := n.replica.Machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bufferSink
	if err := img.Persist(&b); err != nil {
		t.Fatal(err)
	}
	check := func(at uint64, b []byte) error {
		return apply.CheckSnapshot(n.replica.Identity.ClusterID(), &raft.InstallSnapshotRequest{LastLogIndex: at}, bytes.NewReader(b))
	}
	if err := check(2, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	for i := range b.Len() {
		bad := bytes.Clone(b.Bytes())
		bad[i] ^= 1 << (i % 8)
		if check(2, bad) == nil {
			t.Fatalf("byte %d is changed, and it passes", i)
		}
	}
	if check(1, b.Bytes()) == nil {
		t.Error("a snapshot that ends later than it says passes")
	}
	// A forged snapshot: the chunk checksums are right, the digest of the state is wrong.
	data, err := io.ReadAll(snapio.NewReader(bytes.NewReader(b.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	data[4+len("zkgosnap")+4+8+8+4+command.ClusterIDSize+8] ^= 1
	var forged bytes.Buffer
	w := snapio.NewWriter(&forged)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := check(2, forged.Bytes()); err == nil {
		t.Error("a state with another digest passes")
	}
	n.replica.Identity.Cluster = "01000000000000000000000000000000"
	if check(2, b.Bytes()) == nil {
		t.Error("a snapshot of another ensemble passes")
	}
}

// TestStatesWithNamedServersPass: the state marks the lines that a reconfig has named.
// Entries and snapshots with such a state pass the checks.
func TestStatesWithNamedServersPass(t *testing.T) {
	t.Parallel()
	state := append(membership.New([]membership.Member{memberAt(1), memberAt(2), memberAt(3)}).Text(), membership.NamedKey+"2"...)
	n := newNode(testConfig(t, memoryConfig()))
	s := command.LeaderStart{Server: 1, Incarnation: 1, Level: membership.NamedLevel, Flags: command.FlagConfig, Config: state}
	if err := testChecker().Entry(s.Append(nil), command.ClusterID{}); err != nil {
		t.Errorf("leaderStart: %v", err)
	}
	if err := n.replica.Machine.ApplyEntry(1, s.Append(nil)); err != nil {
		t.Fatal(err)
	}
	n.replica.Machine.Config, n.replica.Machine.Fleeting = state, false
	img, err := n.replica.Machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bufferSink
	if err := img.Persist(&b); err != nil {
		t.Fatal(err)
	}
	if err := apply.CheckSnapshot(n.replica.Identity.ClusterID(), &raft.InstallSnapshotRequest{LastLogIndex: 1}, &b); err != nil {
		t.Errorf("snapshot: %v", err)
	}
}

// testChecker returns a checker that knows memberships.
func testChecker() *command.Checker { return (&command.Checkers{Membership: checkMembership}).Get() }

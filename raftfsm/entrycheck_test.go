package raftfsm

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
)

// applicableCommands returns commands of several kinds with valid bodies.
func applicableCommands() []Command {
	create := proto.CreateRequest{Path: "/a", Data: []byte("x"), ACL: proto.OpenACL()}
	return []Command{
		{Kind: KindAttach, Timeout: 4000, Password: [16]byte{1}},
		{Kind: KindRequest, Session: 1 << 56, Gen: 1, Op: proto.OpCreate, Body: create.Append(nil), IDs: []proto.ID{{Scheme: "world", ID: "anyone"}}},
		{Kind: KindSync, Session: 1},
		{Kind: KindExpire, Session: 9},
		{Kind: KindRaise, Body: []byte{0, 0, 0, 1}},
	}
}

// TestEntriesThatCannotBeApplied: the check accepts entries that can be applied, and
// refuses entries that can't, before they get into a log.
func TestEntriesThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	batch := func(commands ...Command) []byte {
		h := batchHeader{incarnation: 1, seq: 1}
		return append(h.append(nil), encodeRun(t, commands)...)
	}
	applicable := applicableCommands()
	start := leaderStart{server: 1, incarnation: 1, level: 1, flags: flagConfig, config: []byte("server.1=a:1:2:participant\nversion=0")}
	foreign, unread := start, start
	foreign.cluster = clusterID{9}
	unread.config = []byte("no list")
	named := start
	named.config = namedConfig()
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"a leader's start":                   {start.append(nil), true},
		"a start with a named line":          {named.append(nil), true},
		"a membership with a named line":     {batch(Command{Kind: KindMembership, Body: proto.AppendBuffer(proto.AppendBuffer(nil, start.config), named.config)}), true},
		"of another ensemble":                {foreign.append(nil), false},
		"with a list that is none":           {unread.append(nil), false},
		"commands":                           {batch(applicable...), true},
		"junk":                               {[]byte("junk"), false},
		"nothing":                            {nil, false},
		"a run that is cut":                  {batch(applicable...)[:batchHeaderSize+30], false},
		"bytes after the last run":           {append(batch(applicable...), 1), false},
		"a create without a body":            {batch(Command{Kind: KindRequest, Session: 1, Op: proto.OpCreate}), false},
		"a read":                             {batch(Command{Kind: KindRequest, Session: 1, Op: proto.OpGetData, Body: []byte{1}}), false},
		"a reap without a body":              {batch(Command{Kind: KindReap}), false},
		"a refusal with a code of its own":   {batch(Command{Kind: KindReconfigRefused, Body: []byte{0, 0, 0, 1}}), false},
		"a level of a byte":                  {batch(Command{Kind: KindRaise, Body: []byte{1}}), false},
		"a membership that is none":          {batch(Command{Kind: KindMembership, Body: proto.AppendBuffer(proto.AppendBuffer(nil, start.config), []byte("x"))}), false},
		"a restore without an id":            {batch(Command{Kind: KindRestoreChunk, Body: []byte{1}}), false},
		"what is no command, and has a kind": {batch(Command{Kind: KindReconfigDone}), false},
	} {
		if err := new(entryChecker).entry(c.data, clusterID{}); name != "of another ensemble" && (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err := new(entryChecker).entry(c.data, clusterID{7}); name == "of another ensemble" && err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

// namedConfig returns the state of a membership with one line named by a reconfig.
func namedConfig() []byte {
	return []byte("server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=100000002" + namedKey + "2")
}

// TestSnapshotWithNamedLines: a snapshot from after a reconfig passes the check.
func TestSnapshotWithNamedLines(t *testing.T) {
	t.Parallel()
	n := newNode(testConfig(t, memoryConfig()))
	n.others = alone{n}
	s := leaderStart{server: 1, incarnation: 1, level: level, cluster: clusterID{5}, flags: flagConfig, config: namedConfig()}
	if err := n.machine.apply(1, s.append(nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(n.machine.config, []byte(namedKey)) {
		t.Fatalf("the state is %q", n.machine.config)
	}
	n.machine.fleeting = false
	img, err := n.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := img.(*image).write(&b); err != nil {
		t.Fatal(err)
	}
	e := &ensemble{n: n}
	if err := e.checkSnapshot(&raft.InstallSnapshotRequest{LastLogIndex: 1}, &b); err != nil {
		t.Error(err)
	}
}

// FuzzEntryCheck: an entry that passes the check can be applied, unless a later version
// wrote it.
func FuzzEntryCheck(f *testing.F) {
	applicable := applicableCommands()
	s := leaderStart{server: 1, incarnation: 1, level: 1}
	f.Add(s.append(nil))
	h := batchHeader{incarnation: 1, seq: 1}
	f.Add(append(h.append(nil), encodeRun(f, applicable)...))
	f.Add(append(h.append(nil), encodeRun(f, []Command{{Kind: KindMembership, Body: make([]byte, 8)}})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if new(entryChecker).entry(b, clusterID{}) != nil {
			return
		}
		n := newNode(testConfig(t, memoryConfig()))
		n.others = alone{n}
		n.machine.incarnation = 1
		n.machine.newest = 1<<32 - 1
		if err := n.machine.apply(1, b); err != nil {
			var h batchHeader
			if _, derr := h.decode(b); derr == nil && h.check.index != 0 {
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
	n.others = alone{n}
	s := leaderStart{server: 1, incarnation: 1, level: 1, cluster: clusterID{5}}
	h := batchHeader{incarnation: 1, seq: 1}
	for i, data := range [][]byte{s.append(nil), append(h.append(nil), encodeRun(t, applicable[:1])...)} {
		if err := n.machine.apply(uint64(i+1), data); err != nil {
			t.Fatal(err)
		}
	}
	n.machine.fleeting = false
	img, err := n.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := img.(*image).write(&b); err != nil {
		t.Fatal(err)
	}
	e := &ensemble{n: n}
	check := func(at uint64, b []byte) error {
		return e.checkSnapshot(&raft.InstallSnapshotRequest{LastLogIndex: at}, bytes.NewReader(b))
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
	forged := bytes.Clone(b.Bytes())
	size := int(binary.BigEndian.Uint32(forged))
	data := forged[chunkHeaderSize : chunkHeaderSize+size]
	data[4+len(snapshotMagic)+4+8+8+4+clusterIDSize+8] ^= 1
	binary.BigEndian.PutUint32(forged[4:], chunkSum(0, data))
	if err := check(2, forged); err == nil {
		t.Error("a state with another digest passes")
	}
	n.identity.Cluster = "01000000000000000000000000000000"
	if check(2, b.Bytes()) == nil {
		t.Error("a snapshot of another ensemble passes")
	}
}

// TestStatesWithNamedServersPass: the state marks the lines that a reconfig has named.
// Entries and snapshots with such a state pass the checks.
func TestStatesWithNamedServersPass(t *testing.T) {
	t.Parallel()
	m := newMembership([]Member{memberAt(1), memberAt(2), memberAt(3)})
	m.members[1].named = true
	state := m.state()
	n := newNode(testConfig(t, memoryConfig()))
	n.others = alone{n}
	s := leaderStart{server: 1, incarnation: 1, level: namedLevel, flags: flagConfig, config: state}
	if err := checkLeaderStart(s.append(nil), clusterID{}); err != nil {
		t.Errorf("leaderStart: %v", err)
	}
	if err := n.machine.apply(1, s.append(nil)); err != nil {
		t.Fatal(err)
	}
	n.machine.config, n.machine.fleeting = state, false
	img, err := n.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := img.(*image).write(&b); err != nil {
		t.Fatal(err)
	}
	if err := (&ensemble{n: n}).checkSnapshot(&raft.InstallSnapshotRequest{LastLogIndex: 1}, &b); err != nil {
		t.Errorf("snapshot: %v", err)
	}
}

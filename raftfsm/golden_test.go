package raftfsm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc64"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

var recordLog = flag.Bool("record-log", false, "record testdata/level<n>.log.gz for the newest behaviour level")

// everyKind returns a log with every kind of entry and command.
func everyKind() [][]byte {
	log := randomLog(rand.New(rand.NewPCG(7, 7)), 200)
	l := newLeader(99, command.FlagConfig)
	l.start.Policy = tree.ReconfigEnabled
	l.start.Config = []byte("server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=0")
	super := []proto.ID{{Scheme: "super", ID: ""}, {Scheme: "ip", ID: "10.0.0.1"}}
	s := firstSession()
	s.ID += 1 << 20 // not a session of the random log
	attach := attachCommand()
	log = append(log, l.begin(), l.batch(attach))
	r := newReplica(nopTB{})
	for _, e := range log {
		if err := r.feed(e); err != nil {
			panic(err)
		}
	}
	for row := range r.Sessions.All {
		s = row // the newest
	}
	was := r.Config
	acl := write(s, proto.OpSetACL, &proto.SetACLRequest{Path: "/g", ACL: acl10(), Version: -1})
	multi := write(s, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/g/m", ACL: proto.OpenACL()}},
		{Op: proto.OpCheck, Req: &proto.CheckVersionRequest{Path: "/g/m", Version: 0}},
		{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/g/m", Version: 9}},
	}})
	reconfig := reconfigure(s, "server.3=c:1:2:observer;3", "", "", -1)
	reconfig.IDs = super
	refused := command.Command{Kind: command.KindReconfigRefused, Session: s.ID, Gen: s.Gen, Op: proto.OpReconfig, Body: []byte{0xff, 0xff, 0xff, 0xf3}}
	moved := proto.AppendBuffer(proto.AppendBuffer(nil, was), []byte("server.1=x:1:2:participant\nserver.2=b:1:2:participant\nversion=0"))
	other := tree.New()
	other.Apply(&tree.Txn{Zxid: 90<<32 | 1, Time: 5}, proto.OpCreate, &proto.CreateRequest{Path: "/r", Data: []byte("restored"), ACL: acl10()})
	other.Apply(&tree.Txn{Zxid: 90<<32 | 2, Time: 6}, proto.OpCreateContainer, &proto.CreateRequest{Path: "/r/c", ACL: proto.OpenACL(), Flags: flagContainer})
	snap := other.Snapshot()
	defer snap.Release()
	var content bytes.Buffer
	if _, err := snap.WriteTo(&content); err != nil {
		panic(err)
	}
	restore := restoreOf(12, content.Bytes(), 300)
	late := restoreOf(11, content.Bytes(), 300)[:2]
	mirror := following100()
	return append(log, l.batch(create(s, "/g", 0), acl, multi), l.batch(command.Command{Kind: command.KindSync}, command.Command{Kind: command.KindRaise, Body: binary.BigEndian.AppendUint32(nil, 1)},
		refused, command.Command{Kind: command.KindMembership, Body: moved}, reconfig, create(s, "/g/c", flagContainer), create(s, "/g/s", flagSequential)),
		l.batch(late...), l.batch(abortOf(11)), l.batch(restore[:2]...), l.batch(append(restore[2:], create(s, "/gone", 0), attach)...),
		l.batch(mirror...), l.batch(attach, create(s, "/gone", 0), phaseOf(mirrored.Fenced), attach, phaseOf(mirrored.Open), phaseOf(mirrored.Done), attach))
}

// following100 returns the commands that make the servers follow an ensemble in epoch
// 100, and then replace it.
func following100() []command.Command {
	empty := restoreOf(13, bytesOf(nopTB{}, tree.New()), 300)
	tr, sessions := treeOf(nopTB{}, 100, 3), session.NewTable()
	sessions.Put(session.Session{ID: oldSession, Timeout: 6000, Password: zktxn.Password(oldSession), Gen: 1})
	e := &ofEnsemble{tr.LastZxid()}
	z := e.prev
	cmds := append(empty, mirrorOf(nopTB{}, tr, sessions)...)
	return append(cmds, e.command(createTxn(z+1, oldSession, 1, "/followed", true, 2), append(txnHead(z+2, 99, 0, proto.OpCreateSession), 0, 0, 0x10, 0)),
		markOf(mirrored.Mark{InSync: true}), attachCommand(), endOf(z+2))
}

func acl10() []proto.ACL {
	return []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}
}

// nopTB is a testing.TB for helpers that use it only to report failures.
type nopTB struct{ testing.TB }

func (nopTB) Helper()        {}
func (nopTB) Cleanup(func()) {}

// TestGoldenLogs replays the logs of earlier versions and checks that the state is the same
// as it was then. A change of behaviour must depend on the behaviour level.
func TestGoldenLogs(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("testdata/level%d.log.gz", command.Level)
	if *recordLog {
		if _, err := os.Stat(name); err == nil {
			t.Fatalf("%s is what a version wrote: it is never recorded anew", name)
		}
		writeLog(t, name, everyKind())
	}
	files, err := filepath.Glob("testdata/level*.log.gz")
	if err != nil || len(files) < command.Level {
		t.Fatalf("%d logs for %d levels: %v", len(files), command.Level, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(strings.TrimSuffix(file, ".log.gz") + ".digest")
		if err != nil && !*recordLog {
			t.Fatal(err)
		}
		r := newReplica(t)
		for _, e := range readLog(t, file) {
			r.mustFeed(t, e)
		}
		got := fmt.Sprintf("digest %x state %x zxid %x level %d\n", r.Claims.Last().Digest,
			crc64.Checksum([]byte(r.dump(t)), crc64.MakeTable(crc64.ECMA)), r.Tree.LastZxid(), r.Machine.Level)
		if *recordLog && len(want) == 0 {
			if err := os.WriteFile(strings.TrimSuffix(file, ".log.gz")+".digest", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got != string(want) {
			t.Errorf("%s: %s, recorded %s", file, got, want)
		}
	}
}

func writeLog(t *testing.T, name string, entries [][]byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, e := range entries {
		if _, err := z.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(e))), e...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readLog(t *testing.T, name string) (entries [][]byte) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for len(all) > 0 {
		n := binary.BigEndian.Uint32(all)
		entries = append(entries, all[4:4+n])
		all = all[4+n:]
	}
	return entries
}

package logreader

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tree"
)

var cluster = command.ClusterID{1, 2}

// leaderStart returns the entry that starts a leadership.
func leaderStart(server uint8, incarnation uint64) []byte {
	s := command.LeaderStart{Server: server, Incarnation: incarnation, Time: 1000, Level: command.Level, Cluster: cluster}
	return s.Append(nil)
}

// batch returns an entry of commands of server 2.
func batch(incarnation, seq uint64, cmds ...command.Command) []byte {
	h := command.BatchHeader{Incarnation: incarnation, Seq: seq, Time: 1000 * int64(seq+1), Policy: tree.ExtendedTypes}
	var body []byte
	for i := range cmds {
		body = cmds[i].Append(body)
	}
	b := h.Append(nil)
	n := len(b)
	b = append(b, make([]byte, command.RunHeaderSize)...)
	r := command.RunHeader{Server: 2, Nonce: 9, First: 1, Count: uint32(len(cmds)), Size: uint32(len(body))}
	r.Put(b[n:])
	return append(b, body...)
}

// owner is the session that the first attach in a log of batches creates.
const owner = 2<<56 | 1

func attach() command.Command {
	return command.Command{Kind: command.KindAttach, Timeout: 4000, Password: [16]byte{7}}
}

func write(op proto.Op, req proto.Record) command.Command {
	return command.Command{Kind: command.KindRequest, Session: owner, Gen: 1, Op: op, Body: req.Append(nil)}
}

func create(path string, flags int32) command.Command {
	return write(proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte("data"), ACL: proto.OpenACL(), Flags: flags})
}

// disk is a server's directories, with a store that is open while the files are read.
type disk struct {
	t     *testing.T
	dir   string
	store *raftlog.Store
	last  uint64
	copy  *State // applies the entries, for snapshots
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir(), copy: newState(nil)}
	store, err := raftlog.Open(raftlog.Options{Kind: raftlog.WAL, LogDir: d.dir, SnapDir: d.dir, Retain: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	d.store = store
	return d
}

func (d *disk) files() Files { return Files{LogDir: d.dir, SnapDir: d.dir} }

// add stores command entries.
func (d *disk) add(entries ...[]byte) {
	d.t.Helper()
	for _, data := range entries {
		d.store1(raft.LogCommand, data)
		if err := d.copy.machine.ApplyEntry(d.last, data); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *disk) store1(kind raft.LogType, data []byte) {
	d.t.Helper()
	d.last++
	if err := d.store.Logs().StoreLog(&raft.Log{Index: d.last, Term: 3, Type: kind, Data: data}); err != nil {
		d.t.Fatal(err)
	}
}

// snapshot writes a snapshot of all entries, and returns its directory.
func (d *disk) snapshot() string {
	d.t.Helper()
	image, err := d.copy.machine.Snapshot()
	if err != nil {
		d.t.Fatal(err)
	}
	defer image.Release()
	_, transport := raft.NewInmemTransport("")
	sink, err := d.store.Snapshots().Create(raft.SnapshotVersionMax, d.last, 3, raft.Configuration{}, 1, transport)
	if err == nil {
		err = image.Persist(sink)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	snapshots, err := raftlog.SnapshotFiles(d.dir)
	if err != nil || len(snapshots) == 0 {
		d.t.Fatalf("%d snapshots: %v", len(snapshots), err)
	}
	return snapshots[0].Dir
}

// cut removes the entries before index.
func (d *disk) cut(index uint64) {
	d.t.Helper()
	if err := d.store.Logs().DeleteRange(1, index-1); err != nil {
		d.t.Fatal(err)
	}
}

// read returns the entries and the state at the end.
func (d *disk) read(most int) ([]Entry, *State) {
	d.t.Helper()
	var all []Entry
	s, err := d.files().Read(most, func(e *Entry) error {
		all = append(all, *e)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all, s
}

// content returns the names and the contents of all files.
func (d *disk) content() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// A log from its first entry on: every transaction has its zxid and its result, and a batch
// that a deposed leader left has none. Reading changes no file of the open store.
func TestFromTheBeginning(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.store1(raft.LogConfiguration, raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{
		{ID: membership.FounderID(1), Address: "a:1"}, {ID: membership.FounderID(2), Address: "b:1"},
		{ID: membership.FounderID(3), Address: "c:1", Suffrage: raft.Nonvoter},
	}}))
	d.store1(raft.LogNoop, nil)
	multi := write(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/a/s", ACL: proto.OpenACL(), Flags: 2}},
		{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: "/a", Data: []byte("12345"), Version: -1}},
	}})
	reap := func(path string, zxid int64) command.Command {
		r := tree.Reap{Path: path, Czxid: zxid, Mzxid: zxid}
		return command.Command{Kind: command.KindReap, Op: proto.OpDeleteContainer, Body: r.Append(nil)}
	}
	const container = 4
	d.add(leaderStart(2, 5), batch(5, 1, attach(), create("/a", 0), create("/a", 0), write(proto.OpCreateContainer, &proto.CreateRequest{Path: "/c", ACL: proto.OpenACL(), Flags: container}),
		create("/c/x", 0), write(proto.OpDelete, &proto.DeleteRequest{Path: "/c/x", Version: -1})), batch(4, 9, create("/stale", 0), reap("/stale", 1)),
		batch(5, 2, multi, reap("/gone", 1), reap("/c", 1<<32|4), command.Command{Kind: command.KindSync, Session: owner, Gen: 1}))
	before := d.content()
	entries, s := d.read(10)
	if after := d.content(); len(after) != len(before) {
		t.Errorf("%d files, was %d", len(after), len(before))
	} else {
		for path, text := range before {
			if after[path] != text {
				t.Errorf("%s has changed", path)
			}
		}
	}
	var types []EntryType
	for i, e := range entries {
		types = append(types, e.Type)
		if e.Index != uint64(i+1) || e.Term != 3 || !e.Known {
			t.Errorf("entry %d: %+v", i+1, e)
		}
	}
	if want := []EntryType{EntryMembers, EntryRaft, EntryLeader, EntryBatch, EntryBatch, EntryBatch}; !slices.Equal(types, want) {
		t.Fatalf("%v, want %v", types, want)
	}
	if !slices.Equal(entries[0].Voters, []uint64{1, 2}) {
		t.Errorf("voters %v", entries[0].Voters)
	}
	if e := entries[2]; e.Server != 2 || !e.Time.Equal(time.UnixMilli(1000)) {
		t.Errorf("the leader's entry: %+v", e)
	}
	first := entries[3].Transactions
	if len(first) != 6 || first[0].Timeout != 4000 || first[1].Path != "/a" || first[1].Bytes != len("data") || first[1].Code != proto.Ok ||
		first[2].Code != proto.ErrNodeExists || first[1].Zxid != 1<<32|2 || first[2].Zxid != 1<<32|3 {
		t.Errorf("first batch: %+v", first)
	}
	if e := entries[4]; !e.Skipped || len(e.Transactions) != 0 {
		t.Errorf("what a deposed leader left: %+v", e)
	}
	second := entries[5].Transactions
	if len(second) != 4 || entries[5].Skipped {
		t.Fatalf("second batch: %+v", entries[5])
	}
	if p := second[0].Parts; len(p) != 2 || p[0].Path != "/a/s0000000000" || p[1].Op != proto.OpSetData || p[1].Path != "/a" || p[1].Bytes != 5 {
		t.Errorf("multi: %+v", second[0])
	}
	for i, want := range []Transaction{{Path: "/gone", Code: proto.ErrNoNode}, {Path: "/c", Code: proto.Ok}} {
		if r := second[1+i]; r.Kind != command.KindReap || r.Op != proto.OpDeleteContainer || r.Path != want.Path || r.Code != want.Code {
			t.Errorf("reap: %+v, want %s with %v", r, want.Path, want.Code)
		}
	}
	if y := second[3]; y.Kind != command.KindSync || y.Zxid != 0 {
		t.Errorf("sync: %+v", y)
	}
	if s == nil || s.Index != d.last || s.Cluster != fmt.Sprintf("%x", cluster) || s.Level != command.Level || s.Tree.Get("/a/s0000000000") == nil || s.Tree.Get("/stale") != nil || s.Sessions.Len() != 1 {
		t.Errorf("state %+v", s)
	}
}

// A log without its beginning, and without a snapshot that it continues: the transactions are
// as requested, without zxid and result.
func TestUnknownState(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.add(leaderStart(2, 5), batch(5, 1, attach(), create("/a", 0)), batch(5, 2, create("/a/s", 2)), batch(4, 1, create("/stale", 0)))
	d.snapshot()
	d.cut(3)
	entries, s := d.read(0)
	if s != nil || len(entries) != 2 {
		t.Fatalf("%d entries and state %+v", len(entries), s)
	}
	for i, path := range []string{"/a/s", "/stale"} {
		e := entries[i]
		if e.Known || e.Skipped || len(e.Transactions) != 1 {
			t.Fatalf("%+v", e)
		}
		if tx := e.Transactions[0]; tx.Zxid != 0 || tx.Path != path || tx.Bytes != len("data") || tx.Session != owner {
			t.Errorf("%+v, want %s without a zxid", tx, path)
		}
	}
}

// The state comes from the oldest snapshot that the log continues, among those allowed,
// and from the next one if that is damaged. The entries before it are not known.
func TestOldestSnapshot(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	var dirs []string
	d.add(leaderStart(2, 5), batch(5, 1, attach(), create("/a", 0)))
	for seq := uint64(2); seq < 8; seq++ {
		if seq%2 == 0 {
			dirs = append(dirs, d.snapshot()) // at 2, 4 and 6
		}
		d.add(batch(5, seq, create("/a/s", 2)))
	}
	check := func(what string, most int, first uint64) {
		t.Helper()
		entries, s := d.read(most)
		for _, e := range entries {
			if e.Known != (e.Index >= first) {
				t.Errorf("%s: entry %d is known: %v; want from %d on", what, e.Index, e.Known, first)
			}
			if tx := e.Transactions; e.Known && (len(tx) != 1 || tx[0].Zxid == 0 || tx[0].Path == "/a/s") {
				t.Errorf("%s: entry %d: %+v", what, e.Index, tx)
			}
		}
		if s == nil || s.Index != d.last || s.Tree.LastZxid() != d.copy.Tree.LastZxid() || s.Sessions.Len() != 1 {
			t.Errorf("%s: state %+v", what, s)
		}
	}
	d.cut(3)
	check("all snapshots", 10, 3)
	check("the newest", 1, 7)
	d.cut(4) // the oldest snapshot is not continued any more
	check("without entry 3", 10, 5)
	damage(t, dirs[1])
	check("damaged", 10, 7)
}

// damage flips a bit in the state of a snapshot.
func damage(t *testing.T, dir string) {
	t.Helper()
	var largest string
	var content []byte
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == "state.bin" {
			largest, content = filepath.Join(dir, e.Name()), b
		}
	}
	if largest == "" {
		t.Fatalf("no state among %v", entries)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(largest, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A snapshot is verified as a whole. The error of a damaged one names its directory.
func TestReadSnapshot(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.add(leaderStart(2, 5), batch(5, 1, attach(), create("/a", 0)))
	dir := d.snapshot()
	s, err := ReadSnapshot(dir)
	if err != nil || s.Tree.Get("/a") == nil || s.Sessions.Len() != 1 || s.Index != 2 || s.Cluster != fmt.Sprintf("%x", cluster) || s.Config != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	damage(t, dir)
	if _, err := ReadSnapshot(dir); err == nil || !strings.Contains(err.Error(), filepath.Base(dir)) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := ReadSnapshot(filepath.Join(d.dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

// Reading stops at the first entry that can't be read, with its index, whether the state
// before it is known or not. No later entry is passed on.
func TestStopsAtUnreadableEntries(t *testing.T) {
	t.Parallel()
	run := batch(5, 2, create("/b", 0))
	for name, bad := range map[string][]byte{
		"no entry":     {},
		"format":       {command.Format + 1, command.EntryBatch},
		"kind":         {command.Format, 99},
		"leader start": leaderStart(2, 6)[:20],
		"batch header": run[:10],
		"run":          run[:len(run)-3],
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/known=%v", name, known), func(t *testing.T) {
				t.Parallel()
				d := newDisk(t)
				d.add(leaderStart(2, 5), batch(5, 1, attach(), create("/a", 0)))
				snapshot := d.snapshot() // so that the store lets the log begin later
				d.store1(raft.LogCommand, bad)
				d.store1(raft.LogCommand, run)
				if !known {
					d.cut(2)
					if err := os.RemoveAll(snapshot); err != nil {
						t.Fatal(err)
					}
				}
				var last uint64
				_, err := d.files().Read(10, func(e *Entry) error {
					last = e.Index
					return nil
				})
				if err == nil || !strings.Contains(err.Error(), "log index 3") || last != 2 {
					t.Errorf("ended after entry %d with %v", last, err)
				}
			})
		}
	}
}

// The caller's error ends the reading. Directories without a log have no state. An entry that
// is missing between two files is named.
func TestErrors(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.add(leaderStart(2, 5), batch(5, 1, attach()), batch(5, 2, create("/a", 0)))
	enough, calls := errors.New("enough"), 0
	if _, err := d.files().Read(10, func(*Entry) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%v after %d entries", err, calls)
	}
	dir := t.TempDir()
	for what, f := range map[string]Files{"empty": {LogDir: dir, SnapDir: dir}, "only created": newDisk(t).files()} {
		if _, err := f.Read(10, nil); !errors.Is(err, datadir.ErrNoState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	log, err := raftlog.LookAtLog(d.dir, nil)
	if err != nil || len(log.Files) != 1 {
		t.Fatalf("%d files: %v", len(log.Files), err)
	}
	other := newDisk(t)
	other.last = 4
	other.store1(raft.LogNoop, nil)
	later, err := raftlog.LookAtLog(other.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReadEntries(append(log.Files, later.Files...), nil, func(*Entry) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "log index 4 is missing: 5 follows 3") {
		t.Errorf("with a gap: %v", err)
	}
}

// The dump of two states is the same if one was read from the log and the other from a snapshot
// at its end.
func TestLogAndSnapshotAgree(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.add(leaderStart(2, 5), batch(5, 1, attach(), create("/a", 0), create("/a/e", 1)), batch(5, 2, create("/a/s", 2)))
	_, fromLog := d.read(0)
	fromSnapshot, err := ReadSnapshot(d.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	dump := func(s *State) string {
		var b bytes.Buffer
		if err := s.Tree.Dump(&b); err != nil {
			t.Fatal(err)
		}
		return b.String() + string(s.Sessions.AppendTo(nil))
	}
	if a, b := dump(fromLog), dump(fromSnapshot); a != b || fromLog.Index != fromSnapshot.Index || fromLog.Level != fromSnapshot.Level {
		t.Errorf("from the log\n%s\nfrom the snapshot\n%s", a, b)
	}
}

var _ apply.Handler = (*showing)(nil)

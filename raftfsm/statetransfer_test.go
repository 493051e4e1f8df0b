package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// treeOf returns a tree with znodes below /r, at a zxid of the given epoch.
func treeOf(t testing.TB, epoch int64, n int) *tree.Tree {
	t.Helper()
	tr := tree.New()
	tx := tree.Txn{Zxid: epoch << 32, Time: 5}
	for i := range n + 1 {
		tx.Zxid++
		path := "/r"
		if i > 0 {
			path = fmt.Sprintf("/r/%d", i)
		}
		req := &proto.CreateRequest{Path: path, Data: bytes.Repeat([]byte{byte(i)}, 100), ACL: proto.OpenACL()}
		if res := tr.Apply(&tx, proto.OpCreate, req); res.Code != proto.Ok {
			t.Fatal(res.Code)
		}
	}
	return tr
}

// bytesOf returns the serialized tree, as a restore sends it through the log.
func bytesOf(t testing.TB, tr *tree.Tree) []byte {
	t.Helper()
	tr.Lock()
	snap := tr.Snapshot()
	tr.Unlock()
	defer snap.Release()
	var b bytes.Buffer
	if _, err := snap.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// restoreOf returns the commands that restore content, in pieces of the given size.
func restoreOf(id uint64, content []byte, size int) []command.Command {
	head := binary.BigEndian.AppendUint64(nil, id)
	cmds := []command.Command{{Kind: command.KindRestoreBegin, Body: head}}
	commit := apply.RestoreCommit{Bytes: int64(len(content)), Sum: apply.PieceSum(0, content), Sessions: 1 << 40}
	for ; len(content) > 0; commit.Chunks++ {
		piece := content[:min(size, len(content))]
		content = content[len(piece):]
		body := binary.BigEndian.AppendUint32(bytes.Clone(head), commit.Chunks)
		cmds = append(cmds, command.Command{Kind: command.KindRestoreChunk, Body: append(body, piece...)})
	}
	return append(cmds, command.Command{Kind: command.KindRestoreCommit, Body: commit.Append(bytes.Clone(head))})
}

func abortOf(id uint64) command.Command {
	return command.Command{Kind: command.KindRestoreAbort, Body: binary.BigEndian.AppendUint64(nil, id)}
}

// inhabited returns a machine with two sessions, an ephemeral znode and a membership.
func inhabited(t *testing.T) (*machineCopy, *leader, session.Session) {
	t.Helper()
	r := newReplica(t)
	l := newLeader(5, command.FlagConfig)
	l.start.Config = []byte("server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=0")
	s := firstSession()
	r.mustFeed(t, l.begin())
	r.mustFeed(t, l.batch(attachCommand(), attachCommand(), create(s, "/old", 0), create(s, "/mine", flagEphemeral)))
	return r, l, s
}

// TestRestoreReplacesTheState: a restore replaces everything but the membership, and the
// old sessions can't write anymore.
func TestRestoreReplacesTheState(t *testing.T) {
	t.Parallel()
	for _, epoch := range []int64{0, 40} { // lower and higher than the current epoch
		r, l, s := inhabited(t)
		config := string(r.Tree.Get(tree.ConfigPath).Data())
		var was proto.Stat
		r.Tree.Get(tree.ConfigPath).Stat(&was)
		other := treeOf(t, epoch, 2000)
		cmds := restoreOf(77, bytesOf(t, other), 10_000)
		cmds = append(cmds, create(s, "/after", 0), attachCommand())
		told := map[uint64]apply.Restored{}
		r.Machine.Settled = func(id uint64, o apply.Restored) { told[id] = o }
		r.Machine.Incarnation = 5
		r.node.incarnation.Store(5) // make it the leader, so that it tracks deadlines
		r.mustFeed(t, l.batch(cmds...))

		want := (max(epoch, 1) + 1) << 32
		if o := told[77]; o.Err != nil || o.Zxid != want {
			t.Fatalf("%x, %v", o.Zxid, o.Err)
		}
		if r.Tree.LastZxid() != want+2 { // one refused write and one new session
			t.Errorf("zxid %x", r.Tree.LastZxid())
		}
		if r.exists("/old") || r.exists("/mine") || r.exists("/after") || !r.exists("/r/2000") {
			t.Error("the old state, or only a part of the new one")
		}
		if err := r.Tree.Check(); err != nil {
			t.Error(err)
		}
		var st proto.Stat
		r.Tree.Get(tree.ConfigPath).Stat(&st)
		if got := string(r.Tree.Get(tree.ConfigPath).Data()); got != config || st != was {
			t.Errorf("the membership %q %+v", got, st)
		}
		if r.Tree.Digest() != other.Digest() {
			t.Errorf("digest %x, of what was restored %x", r.Tree.Digest(), other.Digest())
		}
		done := r.recorder.applied[len(r.recorder.applied)-3:]
		if done[0].kind != command.KindRestoreCommit || done[0].zxid != want || done[0].waited {
			t.Errorf("the restore itself: %+v", done[0])
		}
		done = done[1:]
		if done[0].code != proto.ErrSessionExpired || done[0].path != "" {
			t.Errorf("a write of a session that is gone: %+v", done[0])
		}
		if id := done[1].attached.ID; r.Sessions.Len() != 1 || id != 2<<56|(1<<40+1) {
			t.Errorf("%d sessions, the new one %x", r.Sessions.Len(), uint64(id))
		}
		rows := r.Rows
		r.SumRows()
		closed := 0
		for _, e := range r.node.mail.take() {
			if e.kind == evState && e.state.Kind == apply.Ended {
				closed++
			}
		}
		if r.Rows != rows || r.jumped != 1 || closed != 2 {
			t.Errorf("rows %x instead of %x, jumped %d times, %d sessions ended", r.Rows, rows, r.jumped, closed)
		}
		select {
		case <-r.Machine.SnapshotDue():
		default:
			t.Error("no snapshot is due")
		}
	}
}

// TestIncompleteRestore: a damaged or incomplete restore changes nothing, and later
// commands work as usual.
func TestIncompleteRestore(t *testing.T) {
	t.Parallel()
	content := bytesOf(t, treeOf(t, 3, 500))
	ephemerals := treeOf(t, 3, 1)
	ephemerals.Apply(&tree.Txn{Zxid: 3<<32 | 99, Session: 7}, proto.OpCreate, &proto.CreateRequest{Path: "/e", Flags: flagEphemeral, ACL: proto.OpenACL()})
	last := treeOf(t, apply.MaxEpoch, 1)
	pieces := func(change func([]command.Command) []command.Command) []command.Command {
		return change(restoreOf(1, content, 5000))
	}
	flip := func(i, at int) func([]command.Command) []command.Command {
		return func(c []command.Command) []command.Command { c[i].Body[at] ^= 1; return c }
	}
	end := len(restoreOf(1, content, 5000)) - 1
	for name, tc := range map[string]struct {
		cmds []command.Command
		want string
	}{
		"a flipped bit":       {pieces(flip(3, 100)), "damaged"},
		"a flipped start":     {pieces(flip(1, 12)), "damaged"},
		"a wrong number":      {pieces(flip(2, 11)), "piece 1 of it is missing"},
		"a wrong length":      {pieces(flip(end, 8+4+7)), "bytes and checksum"},
		"a wrong checksum":    {pieces(flip(end, 8+4+8)), "bytes and checksum"},
		"a wrong count":       {pieces(flip(end, 8+3)), "pieces with"},
		"a commit cut short":  {pieces(func(c []command.Command) []command.Command { c[end].Body = c[end].Body[:20]; return c }), "body of 12 bytes"},
		"a piece too few":     {pieces(func(c []command.Command) []command.Command { return append(c[:2:2], c[3:]...) }), "piece 1 of it is missing"},
		"a piece twice":       {pieces(func(c []command.Command) []command.Command { return append(c[:3:3], c[2:]...) }), "piece 2 of it is missing"},
		"bytes after the end": {restoreOf(1, append(bytes.Clone(content), 0), 5000), "after the end"},
		"cut off":             {restoreOf(1, content[:len(content)-1], 5000), "ends early"},
		"nothing":             {restoreOf(1, nil, 5000), "ends early"},
		"ephemeral znodes":    {restoreOf(1, bytesOf(t, ephemerals), 5000), "1 ephemeral znodes"},
		"no epoch is left":    {restoreOf(1, bytesOf(t, last), 5000), "there is none above"},
		"an abort":            {pieces(func(c []command.Command) []command.Command { return append(c[:3:3], abortOf(1), c[3]) }), "given up"},
		"another one": {pieces(func(c []command.Command) []command.Command {
			return append(c[:3:3], restoreOf(2, content, 5000)[0], c[3])
		}), "another restore"},
		"a commit of another": {pieces(func(c []command.Command) []command.Command {
			return append(c[:3:3], restoreOf(2, content, 5000)[end], abortOf(2), abortOf(1))
		}), "given up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, l, s := inhabited(t)
			var told []error
			r.Machine.Settled = func(id uint64, o apply.Restored) {
				if id == 1 {
					told = append(told, o.Err)
				}
			}
			before := r.dump(t)
			before = before[:strings.Index(before, "\n5 ")] // cut off the batch counter
			r.mustFeed(t, l.batch(tc.cmds...))
			after := r.dump(t)
			if !strings.HasPrefix(after, before) || r.jumped != 0 || r.Sessions.Len() != 2 {
				t.Errorf("something has changed:\n%s\n%s", before, after)
			}
			if len(told) != 1 || told[0] == nil || !strings.Contains(told[0].Error(), tc.want) {
				t.Errorf("told %v", told)
			}
			r.mustFeed(t, l.batch(create(s, "/new", 0)))
			if !r.exists("/new") {
				t.Error("it does not go on")
			}
		})
	}
}

// TestRestoreIsInterrupted: a new leadership and stateTransferLimit end an uncommitted restore; a
// later commit has no effect.
func TestRestoreIsInterrupted(t *testing.T) {
	t.Parallel()
	cmds := restoreOf(1, bytesOf(t, treeOf(t, 3, 500)), 5000)
	end := len(cmds) - 1
	for name, tc := range map[string]struct {
		between func(r *machineCopy, l *leader)
		want    string
	}{
		"another leadership": {func(r *machineCopy, l *leader) {
			l.start.Incarnation, l.seq = 6, 0
			r.mustFeed(t, l.begin())
		}, "another leadership"},
		"much time":          {func(_ *machineCopy, l *leader) { l.seq += uint64(apply.StateTransferLimit/time.Second) + 1 }, "no more data"},
		"not so much time":   {func(_ *machineCopy, l *leader) { l.seq += uint64(apply.StateTransferLimit/time.Second) - 1 }, ""},
		"a clock that jumps": {func(_ *machineCopy, l *leader) { l.seq = 0 }, ""},
	} {
		r, l, _ := inhabited(t)
		var told error
		r.Machine.Settled = func(_ uint64, o apply.Restored) { told = o.Err }
		r.mustFeed(t, l.batch(cmds[:end]...))
		tc.between(r, l)
		seq := l.seq // the batch times derive from seq, and the batch must be the machine's next one
		r.Machine.Seq = seq
		r.mustFeed(t, l.batch(cmds[end]))
		switch restored := r.exists("/r"); {
		case restored != (tc.want == ""):
			t.Errorf("%s: restored %v", name, restored)
		case tc.want != "" && (told == nil || !strings.Contains(told.Error(), tc.want)):
			t.Errorf("%s: %v", name, told)
		}
	}
}

// TestNoSnapshotWhileAStateArrives: a snapshot doesn't contain the restore in progress, and
// the log must not be truncated after a piece.
func TestNoSnapshotWhileAStateArrives(t *testing.T) {
	t.Parallel()
	r, l, s := inhabited(t)
	cmds := restoreOf(1, bytesOf(t, treeOf(t, 3, 500)), 5000)
	r.mustFeed(t, l.batch(cmds[:3]...))
	if i, err := r.Machine.Snapshot(); err == nil {
		i.Release()
		t.Fatal("a snapshot without what has arrived")
	}
	r.Machine.SnapCounter.Soon()
	r.mustFeed(t, l.batch(create(s, "/x", 0)))
	select {
	case <-r.Machine.SnapshotDue():
		t.Error("one is asked for again and again")
	default:
	}
	r.mustFeed(t, l.batch(abortOf(1)))
	i, err := r.Machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	i.Release()
	r.Machine.Fleeting = true
	r.mustFeed(t, l.batch(cmds[:3]...))
	if _, err := r.Machine.Snapshot(); err != nil {
		t.Errorf("no server will read it, and the log has to become shorter: %v", err)
	}
}

// TestRestoreIsSkipped: a server that gets a snapshot can't know the outcome of an earlier
// restore, so it drops the restore.
func TestRestoreIsSkipped(t *testing.T) {
	t.Parallel()
	a, l, s := inhabited(t)
	b, _, _ := inhabited(t)
	cmds := restoreOf(1, bytesOf(t, treeOf(t, 3, 500)), 5000)
	end := len(cmds) - 1
	var told error
	b.Machine.Settled = func(_ uint64, o apply.Restored) { told = o.Err }
	begun := l.batch(cmds[:end]...)
	a.mustFeed(t, begun)
	b.mustFeed(t, begun)
	a.mustFeed(t, l.batch(abortOf(1), create(s, "/since", 0)))
	if err := b.Machine.Restore(io.NopCloser(bytes.NewReader(a.snapshot(t)))); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(told, ErrRestoreUnknown) {
		t.Errorf("told %v", told)
	}
	b.index = a.index
	late := l.batch(cmds[end])
	a.mustFeed(t, late)
	b.mustFeed(t, late)
	if a.dump(t) != b.dump(t) || !b.exists("/since") || b.exists("/r") {
		t.Error("the states differ")
	}
}

// TestRestoreBelowItsLevel: at a lower behaviour level, a restore has no effect.
func TestRestoreBelowItsLevel(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(5, 0)
	l.start.Level = apply.RestoreLevel - 1
	r.mustFeed(t, l.begin())
	cmds := restoreOf(1, bytesOf(t, treeOf(t, 3, 10)), 5000)
	r.mustFeed(t, l.batch(cmds...))
	if r.exists("/r") || r.Machine.Arriving != nil {
		t.Error("restored")
	}
	r.mustFeed(t, l.batch(append([]command.Command{{Kind: command.KindRaise, Body: []byte{0, 0, 0, apply.RestoreLevel}}}, cmds...)...))
	if !r.exists("/r") {
		t.Error("not restored at its level")
	}
	if err := r.feed(l.batch(command.Command{Kind: command.KindRestoreBegin})); err == nil {
		t.Error("a restore without an id")
	}
}

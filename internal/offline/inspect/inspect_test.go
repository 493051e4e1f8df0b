package inspect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/formats"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// running starts a server on a directory, and a client for it.
func running(t *testing.T, dir string) (*server.Server, *client.Client) {
	t.Helper()
	s := must.Get(server.Start(t.Context(), server.Config{
		ClientAddr: "127.0.0.1:0", DataDir: dir, Log: server.Log{Dir: dir}, Admin: &server.Admin{Addr: "127.0.0.1:0"},
		Auth: server.Auth{SuperDigest: "super:lK75jTNcA+U9vtVEw5vB51mj/w4="}, Env: server.Env{Formats: formats.All()},
	}))(t)
	t.Cleanup(func() { _ = s.Close() })
	<-s.Ready()
	c := must.Get(client.Connect(t.Context(), s.ClientAddrs()[0]))(t)
	t.Cleanup(func() { _ = c.Close() })
	return s, c
}

// lines returns the transactions in the log of a directory.
func lines(t *testing.T, d Dirs, f Filter) []Transaction {
	t.Helper()
	var all []Transaction
	must.Do(t, Log(d, f, func(tx *Transaction) error { all = append(all, *tx); return nil }))
	return all
}

// The files of a running zkgo server should match what its clients see.
func TestOurFiles(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, c := running(t, dir)
	_, err := c.Create(ctx, "/a", []byte("one"))
	must.Do(t, err)
	before := filepath.Join(t.TempDir(), "before.zkb")
	src := backup.Source{URL: s.AdminAddr(), Auth: "digest super:secret"}
	_, err = backup.Take(ctx, src, before, "a test", true)
	must.Do(t, err)
	_, err = c.Set(ctx, "/a", []byte("two"), client.AnyVersion)
	must.Do(t, err)
	_, err = c.SetACL(ctx, "/", []client.ACL{{Perms: proto.PermAll, ID: client.ID{Scheme: "world", ID: "anyone"}}, {Perms: proto.PermRead, ID: client.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}, client.AnyVersion)
	must.Do(t, err)
	_, err = c.Create(ctx, "/e", nil, client.Ephemeral)
	must.Do(t, err)
	_, err = c.Multi(ctx, client.CreateOp("/b", []byte("12345")), client.DeleteOp("/nosuch", client.AnyVersion))
	if err == nil {
		t.Fatal("a multi that cannot be")
	}
	_, err = c.Multi(ctx, client.CreateOp("/b", []byte("12345")), client.CreateOp("/b/c", nil))
	must.Do(t, err)

	d := Dirs{Data: dir}
	files, err := List(d, true)
	if err != nil || len(files) != 3 || files[1].Kind != "log" || files[1].First != 1 || files[1].Last == 0 || problems(files) != nil {
		t.Fatalf("%+v, %v", files, err)
	}
	all := lines(t, d, Filter{})
	var text []string
	for i := range all {
		if i > 0 && all[i].Zxid != all[i-1].Zxid+1 {
			t.Errorf("zxid %v follows %v", all[i].Zxid, all[i-1].Zxid)
		}
		text = append(text, all[i].Text())
	}
	session := Hex(c.Session().ID)
	for i, want := range []string{
		"createSession timeout", `create2 "/a" 3 bytes`, `setData "/a" 3 bytes`, `setACL "/"`, `create2 "/e"`,
		`multi: create2 "/b" 5 bytes`, `multi: create2 "/b" 5 bytes; create2 "/b/c"`,
	} {
		want = strings.ReplaceAll(want, "create2", all[1].Op) // either of the two, depending on the client
		if i >= len(text) || !strings.Contains(text[i], want) || all[i].Session != session || all[i].Time.IsZero() {
			t.Errorf("line %d of\n%s\nwant %s", i, strings.Join(text, "\n"), want)
		}
	}
	if len(all) != 7 || !strings.Contains(text[5], "NoNode") {
		t.Errorf("%d lines:\n%s", len(all), strings.Join(text, "\n"))
	}
	for _, f := range []struct {
		Filter
		want int
	}{{Filter{Below: "/b"}, 2}, {Filter{From: 2, To: 3}, 2}, {Filter{Session: session}, 7}, {Filter{Session: 1}, 0}, {Filter{Below: "/"}, 6}} {
		if got := lines(t, d, f.Filter); len(got) != f.want {
			t.Errorf("%+v: %d lines instead of %d", f.Filter, len(got), f.want)
		}
	}
	if got := lines(t, d, Filter{All: true}); len(got) <= 7 || !slices.ContainsFunc(got, func(tx Transaction) bool { return tx.Op == "leader" }) {
		t.Errorf("%d lines with those that are no transactions", len(got))
	}

	img, err := Open(d)
	must.Do(t, err)
	sum := Summarise(img, 1)
	if sum.Nodes != 8 || sum.Ephemerals != 1 || sum.Sessions != 1 || len(sum.Owners) != 1 || sum.Owners[0].Session != session || len(sum.Subtrees) != 5 {
		t.Errorf("%+v", sum)
	}
	for _, sub := range sum.Subtrees {
		if sub.Path == "/b" && (sub.Nodes != 2 || sub.Bytes != 5 || sub.Largest != 5 || sub.LargestAt != "/b" || sub.Children != 1 || sub.LastZxid != img.Zxid) {
			t.Errorf("%+v", sub)
		}
	}
	old, err := Open(Dirs{Data: before})
	must.Do(t, err)
	diff, err := Compare(old, img, "/", false)
	must.Do(t, err)
	var b bytes.Buffer
	must.Do(t, diff.Text(&b))
	for _, want := range []string{"! \"/a\" data\n    - \"one\"", "+ \"two\"", `+ "/b" "12345"`, `+ "/b/c"`, `+ "/e"`, "! \"/\" acl", "ip:10.0.0.0/8:r", "5 znodes differ, 0 sessions ended, 0 began"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if diff, err = Compare(img, old, "/b", true); err != nil || len(diff.Differences) != 2 || diff.Differences[0].Change != Removed {
		t.Errorf("%+v, %v", diff, err)
	}
	if _, err = Compare(img, old, "/nosuch", true); err == nil {
		t.Error("a root that is nowhere")
	}

	must.Do(t, s.Node().Snapshot())
	files, err = Verify(d)
	if err != nil || len(files) != 4 || files[2].Kind != "snapshot" || problems(files) != nil {
		t.Fatalf("%+v, %v", files, err)
	}
	again, err := Open(Dirs{Data: files[2].Path})
	must.Do(t, err)
	if diff, err = Compare(img, again, "/", true); err != nil || len(diff.Differences) != 0 || again.Digest != img.Digest {
		t.Errorf("%+v, %v", diff, err)
	}
}

// We should find and report damage, and still list the valid files.
func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, c := running(t, dir)
	_, err := c.Create(t.Context(), "/needle-in-the-snapshot", nil)
	must.Do(t, err)
	must.Do(t, s.Node().Snapshot())
	d := Dirs{Data: dir}
	files, err := Verify(d)
	if err != nil || len(files) != 4 {
		t.Fatalf("%+v, %v", files, err)
	}
	state := filepath.Join(files[2].Path, "state.bin")
	b, err := os.ReadFile(state)
	must.Do(t, err)
	b[bytes.Index(b, []byte("needle"))] ^= 1
	must.Do(t, os.WriteFile(state, b, 0o600))
	files, err = Verify(d)
	if err != nil || len(files) != 4 || len(problems(files)) != 1 || !strings.Contains(files[2].Problem, state) {
		t.Errorf("%+v, %v", files, err)
	}
	if _, err := Open(Dirs{Data: files[2].Path}); err == nil || !strings.Contains(err.Error(), state) {
		t.Errorf("%v", err)
	}
	var out struct{ Problem, Last, First string }
	text, err := json.Marshal(files[2])
	must.Do(t, err)
	must.Do(t, json.Unmarshal(text, &out))
	if out.Problem == "" || out.First != "-" || out.Last == "" || out.Last == "-" {
		t.Errorf("%s", text)
	}
}

// We should recognize ZooKeeper's files by name, and inspect them, too.
func TestZooKeepersSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, versionDir), 0o700))
	write := func(zxid int64, compression zkfiles.Compression) string {
		tr := tree.New()
		tr.Apply(&tree.Txn{Zxid: zxid, Time: 7}, proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()})
		tr.Lock()
		snap := tr.Snapshot()
		tr.Unlock()
		defer snap.Release()
		var b bytes.Buffer
		must.Do(t, zkfiles.WriteSnapshot(&b, snap, session.NewTable(), compression))
		path := filepath.Join(dir, versionDir, zkfiles.SnapshotName(zxid, compression))
		must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
		return path
	}
	write(0x10, zkfiles.None)
	newest := write(0x1a, zkfiles.Gzip)
	files, err := List(Dirs{Data: dir}, true)
	if err != nil || len(files) != 2 || files[1].Path != newest || files[1].Last != 0x1a || files[1].Problem != "" || files[1].Format != FormatZooKeeper {
		t.Fatalf("%+v, %v", files, err)
	}
	if first, last := files[1].Range(); first != "-" || last != "0x1a" {
		t.Error(first, last)
	}
	img, err := Open(Dirs{Data: newest})
	if err != nil || img.Zxid != 0x1a || img.Note != "" {
		t.Errorf("%+v, %v", img, err)
	}
	must.Do(t, os.Truncate(newest, 40))
	if files, err = Verify(Dirs{Data: dir}); err != nil || files[0].Problem != "" || !strings.Contains(files[1].Problem, newest) {
		t.Errorf("%+v, %v", files, err)
	}
	for _, nothing := range []string{t.TempDir(), filepath.Join(dir, "nosuch")} {
		if _, err := Open(Dirs{Data: nothing}); err == nil || !strings.Contains(err.Error(), nothing) {
			t.Errorf("%v", err)
		}
		if _, err := Verify(Dirs{Data: nothing}); err == nil {
			t.Error("nothing was verified")
		}
	}
}

func TestHex(t *testing.T) {
	t.Parallel()
	var h Hex
	for text, want := range map[string]Hex{"0x1f": 31, "1f": 31, "ffffffffffffffff": -1} {
		if err := h.UnmarshalText([]byte(text)); err != nil || h != want {
			t.Errorf("%s: %v, %v", text, h, err)
		}
	}
	if err := h.UnmarshalText([]byte("zx")); err == nil {
		t.Error("no number")
	}
	if Hex(-1).String() != "0xffffffffffffffff" {
		t.Error(Hex(-1))
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/overview"
	"github.com/zkgo/zkgo/internal/cli/terminal"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// bench is a shell connected to a server, with its output.
type bench struct {
	t        *testing.T
	zs       *zktest.Server
	shell    *Shell
	out, err *bytes.Buffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchJSON(t, false)
}

func newBenchJSON(t *testing.T, asJSON bool) *bench {
	t.Helper()
	b := &bench{t: t, zs: zktest.Run(t), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	b.shell = New(Config{Out: b.out, Err: b.err, In: strings.NewReader(""), Quiet: true, JSON: asJSON, Patience: 60 * time.Second})
	if err := b.shell.Connect(b.zs.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.shell.Close(); err != nil {
			t.Error(err)
		}
	})
	b.zs.Seed(map[string]string{"/app": "root", "/app/a": "one", "/app/a/b": "two\nlines", "/app/c": ""})
	return b
}

// try runs a command and returns its output.
func (b *bench) try(args ...string) (string, error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 60*time.Second)
	defer cancel()
	b.out.Reset()
	b.err.Reset()
	err := b.shell.Run(ctx, args)
	return b.out.String(), err
}

func (b *bench) run(args ...string) string {
	b.t.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.t.Fatalf("%q: %v\n%s%s", args, err, out, b.err)
	}
	return out
}

func (b *bench) expect(want string, args ...string) {
	b.t.Helper()
	if got := b.run(args...); got != want {
		b.t.Errorf("%q prints\n%s\nwant\n%s", args, got, want)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.expect("/app\n├── a\n│   └── b\n└── c\n\n4 znodes, 16 B of data\n", "tree", "/app")
	b.expect("/\n└── app\n    ├── a\n    └── c\n\n4 znodes, 7 B of data\n", "tree", "-depth", "2")
	b.expect("/app/a = \"one\"\n└── b = \"two\\nlines\"\n\n2 znodes, 12 B of data\n", "tree", "--data", "/app/a/")
	b = newBenchJSON(t, true)
	var info znodeInfo
	if err := json.Unmarshal([]byte(b.run("tree", "-data", "-depth", "1", "/app/a/b")), &info); err != nil || info.Path != "/app/a/b" || *info.Data != "two\nlines" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.shell.zk.Create(t.Context(), "/app/live", []byte("xx"), client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		want string
		args []string
	}{
		{"/app/a/b\n", []string{"-name", "b"}},
		{"/app/a\n/app/a/b\n", []string{"-regex", "^/app/a", "/app"}},
		{"/app/a/b\n", []string{"-data", "lines"}},
		{"/app/live\n", []string{"-ephemeral", "/app"}},
		{"/app/live\n", []string{"-owner", hexID(b.shell.zk.Session().ID), "/app"}},
		{"/app/a/b\n", []string{"-larger", "4", "/app"}},
		{"/app/c\n/app/live\n", []string{"-smaller", "3", "-leaf", "/app"}},
		{"/app\n", []string{"-children", "2", "/app"}},
		{"5\n", []string{"-acl", "world:anyone:cdrwa", "-count", "/app"}},
		{"0\n", []string{"-acl", "digest", "-count", "/app"}},
		{"0\n", []string{"-older", "1000h", "-count", "/app"}},
		{"5\n", []string{"-newer", "2001-01-01", "-count", "/app"}},
		{"/app\n/app/a\n/app/c\n", []string{"-persistent", "-depth", "1", "/app"}},
	} {
		b.expect(test.want, append([]string{"find"}, test.args...)...)
	}
	for _, bad := range [][]string{{"-name", "["}, {"-regex", "("}, {"-larger", "x"}, {"-newer", "soon"}, {"-owner", "me"}, {"-ephemeral", "-persistent"}} {
		if out, err := b.try(append([]string{"find"}, bad...)...); err == nil {
			t.Errorf("%q was taken: %s", bad, out)
		}
	}
}

func TestDu(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.expect("       4 znodes       16 B  /app\n       2 znodes       12 B  /app/a\n       1 znode         0 B  /app/c\n", "du", "/app")
}

func TestCopyMoveRemoveCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.zs.Dump()
	if out := b.run("cp", "--dry-run", "/app", "/copy"); !strings.HasPrefix(out, "create  /copy\ncreate  /copy/a\n") || !strings.Contains(out, "to be done: 4 created") || b.zs.Dump() != before {
		t.Errorf("a dry run:\n%s\n%s", out, b.zs.Dump())
	}
	b.expect("done: 4 created, 0 written, 0 ACLs set, 0 deleted; 0 unchanged, 0 kept, 0 left out; 16 B written\n", "cp", "-r", "/app", "/copy")
	if _, err := b.try("cp", "/app", "/copy"); err == nil || !strings.Contains(err.Error(), "/copy") {
		t.Errorf("copied onto what is there: %v", err)
	}
	b.zs.Set("/copy/more", "x")
	b.expect("done: 0 created, 0 written, 0 ACLs set, 1 deleted; 4 unchanged, 0 kept, 0 left out; 0 B written\n", "cp", "-overwrite", "-prune", "/app", "/copy")
	other := newBench(t)
	there := other.zs.Addrs()[0]
	b.run("mv", "/copy", there+"/moved/here", "-parents")
	if b.zs.Exists("/copy") || other.zs.Get("/moved/here/a/b") != "two\nlines" {
		t.Errorf("moved:\n%s\n%s", b.zs.Dump(), other.zs.Dump())
	}
	b.expect("4 znodes compared, no difference\n", "diff", "/app", there+"/moved/here")
	if _, err := b.try("rm", "/app"); err == nil || !b.zs.Exists("/app/c") {
		t.Errorf("rm without -r: %v", err)
	}
	b.expect("delete  /app/c\ndelete  /app/a/b\ndelete  /app/a\n3 znodes would be deleted\n", "rm", "-r", "-below", "-dry-run", "/app")
	b.expect("4 znodes deleted\n", "rm", "-r", "/app")
	if _, err := b.try("rm", "-r", "/"); err == nil {
		t.Error("the root was deleted")
	}
	if _, err := b.try("cp", "app", "/x"); err == nil || !strings.Contains(err.Error(), `"app"`) {
		t.Errorf("a place that is none: %v", err)
	}
}

func TestExportImportDiffCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"x.json", "x.yaml"} {
		file := filepath.Join(t.TempDir(), name)
		b.run("export", "-f", file, "-stat", "/app")
		if !strings.Contains(b.err.String(), "4 znodes exported, 0 of them ephemeral") {
			t.Errorf("%s", b.err)
		}
		b.expect("4 znodes compared, no difference\n", "diff", "/app", "file:"+file)
		b.zs.Set("/app/a", "1")
		b.zs.Set("/app/d", "1")
		out, err := b.try("diff", "file:"+file, "/app")
		if exit := new(Exit); !errors.As(err, &exit) || exit.Code != 1 || out != "~ /a  (data)\n    < \"one\"\n    > \"1\"\n+ /d\n" {
			t.Errorf("%v\n%s", err, out)
		}
		b.run("import", "-overwrite", "-prune", file)
		b.expect("4 znodes compared, no difference\n", "diff", "/app", "file:"+file)
		b.run("import", file, "/new")
		b.run("rm", "-r", "/new")
		b.run("rm", "-r", "/app")
		b.run("import", file)
		if _, err := b.try("export", "-f", file+".json", "/none"); err == nil {
			t.Error("exported what is not there")
		}
		list, _ := os.ReadDir(filepath.Dir(file))
		if len(list) != 1 {
			t.Errorf("files are left: %v", list)
		}
	}
	// Through the streams, and truncated.
	text := b.run("export", "/app")
	b.shell.cfg.In = strings.NewReader(text)
	b.run("import", "-", "/piped")
	b.shell.cfg.In = strings.NewReader(text[:len(text)-20])
	if _, err := b.try("import", "-", "/cut"); err == nil || b.zs.Exists("/cut") {
		t.Errorf("a file that is cut off: %v", err)
	}
	for _, bad := range [][]string{{"export", "-f", "x", "/app"}, {"export", "-format", "xml", "/app"}, {"export", "/none"}, {"import", "none.json"}, {"import", "-prune", "-"}} {
		if out, err := b.try(bad...); err == nil {
			t.Errorf("%q: %s", bad, out)
		}
	}
	if _, err := b.try("diff", "/none", "/app"); err == nil || err.(interface{ Unwrap() error }) == nil { //nolint:errorlint // the code is below
		t.Error("no error")
	} else if exit := new(Exit); !errors.As(err, &exit) || exit.Code != 2 {
		t.Errorf("%v", err)
	}
}

func TestWatchCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.shell.Run(ctx, []string{"watch", "-data", "-n", "3", "/app"}) }()
	b.zs.WaitForWatch("/app")
	b.zs.Set("/app/a", "new")
	b.zs.Set("/app/n", "x")
	b.zs.Delete("/app/n")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(b.out.String()), "\n") {
		f := strings.Fields(line)
		got = append(got, f[1]+" "+f[3])
	}
	if want := "NodeDataChanged /app/a, NodeCreated /app/n, NodeDeleted /app/n"; strings.Join(got, ", ") != want {
		t.Errorf("%s", b.out)
	}
	b.run("watch", "-for", "1ms", "/app")
}

// TestOtherEnsembleLost checks that a copy ends when its target is unreachable, and reports its
// progress.
func TestOtherEnsembleLost(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), zktest.Run(t)
	addr := other.Addrs()[0]
	b.run("ls", "/") // the shell is connected
	b.shell.cfg.Patience = time.Second
	fault := other.DelayNext(zktest.Match{Op: proto.OpMulti}, time.Hour)
	done := make(chan error, 1)
	go func() {
		_, err := b.try("cp", "/app", addr+"/copy")
		done <- err
	}()
	// On a machine that stalls for a second, the copy gives up before it starts.
	other.Wait("the copy", func() bool { return fault.Happened() || len(done) > 0 })
	other.RefuseConnections()
	other.DropConnections()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "gave up waiting") {
		t.Errorf("%v", err)
	}
}

// editor writes a script that acts as an editor.
func editor(t *testing.T, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the editor is a shell script")
	}
	name := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return name
}

func TestEdit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.expect("/app/a is unchanged\n", "edit", "-editor", editor(t, "true"), "/app/a")
	b.expect("/app/a is unchanged\n", "edit", "-editor", editor(t, `echo >>"$1"`), "/app/a")
	b.expect("/app/a written, version 1\n", "edit", "-editor", editor(t, `test "$(cat "$1")" = one && echo new >"$1"`), "/app/a")
	if got := b.zs.Get("/app/a"); got != "new" {
		t.Errorf("%q", got)
	}
	b.expect("/app/new written, version 0\n", "edit", "-create", "-editor", editor(t, `printf x >"$1"`), "/app/new")
	if _, err := b.try("edit", "-editor", editor(t, "exit 3"), "/app/a"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%v", err)
	}
	if _, err := b.try("edit", "/none"); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("%v", err)
	}
}

// TestEditConflict checks that the second of two edits overwrites nothing and loses
// nothing.
func TestEditConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	begun, release := filepath.Join(dir, "begun"), filepath.Join(dir, "release")
	script := editor(t, `echo mine >"$1"; touch "`+begun+`"; while ! test -e "`+release+`"; do sleep 0.01; done`)
	done := make(chan error, 1)
	go func() {
		_, err := b.try("edit", "-editor", script, "/app/a")
		done <- err
	}()
	b.zs.Wait("the editor", func() bool { _, err := os.Stat(begun); return err == nil })
	b.zs.Set("/app/a", "theirs")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := <-done
	if !errors.Is(err, client.ErrBadVersion) || b.zs.Get("/app/a") != "theirs" {
		t.Fatalf("%v, %q", err, b.zs.Get("/app/a"))
	}
	_, file, _ := strings.Cut(err.Error(), "is in ")
	if kept, ferr := os.ReadFile(strings.TrimSpace(file)); ferr != nil || string(kept) != "mine\n" {
		t.Fatalf("%v\nkept: %q, %v", err, kept, ferr)
	}
	os.RemoveAll(filepath.Dir(strings.TrimSpace(file)))
}

// TestEditOfARecreatedZnode checks that edit doesn't overwrite a znode that another client deleted
// and created again, although its version is the same, and that the exit code shows it.
func TestEditOfARecreatedZnode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	begun, release := filepath.Join(dir, "begun"), filepath.Join(dir, "release")
	if out, err := exec.Command("mkfifo", begun, release).CombinedOutput(); err != nil {
		t.Skipf("no mkfifo: %v, %s", err, out)
	}
	script := editor(t, `echo mine >"$1"; echo >"`+begun+`"; read x <"`+release+`"`)
	done := make(chan int, 1)
	go func() { done <- b.shell.Command(t.Context(), []string{"edit", "-editor", script, "/app/c"}) }()
	if _, err := os.ReadFile(begun); err != nil { // the editor runs
		t.Fatal(err)
	}
	b.zs.Delete("/app/c")
	b.zs.Set("/app/c", "theirs")
	if err := os.WriteFile(release, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code := <-done
	text, file, _ := strings.Cut(strings.TrimSpace(b.err.String()), "\nyour text is in ")
	if code != 1 || !strings.Contains(text, "/app/c was deleted and created again") || b.zs.Get("/app/c") != "theirs" {
		t.Errorf("%d, %q, %q", code, text, b.zs.Get("/app/c"))
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != "mine\n" {
		t.Errorf("kept: %q, %v", kept, err)
	}
	os.RemoveAll(filepath.Dir(file)) //nolint:errcheck // a temporary directory
}

func TestTop(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out := b.run("top", "-once")
	if !strings.Contains(out, "1 of 1 server serving, standalone") || !strings.Contains(strings.Join(strings.Fields(out), " "), b.zs.Addrs()[0]+" standalone 0x") {
		t.Errorf("%s", out)
	}
	if out := b.run("top", "-n", "2", "-i", "10ms"); strings.Count(strings.Join(strings.Fields(out), " "), " standalone 0x") != 2 || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	// A server that doesn't answer is shown, and the exit code reports it.
	down := "127.0.0.1:1"
	out, err := b.try("top", "-once", b.zs.Addrs()[0]+","+down)
	if err == nil || !strings.Contains(err.Error(), down) || !strings.Contains(out, "1 of 2 servers serving") {
		t.Errorf("%v\n%s", err, out)
	}
	b = newBenchJSON(t, true)
	var sample struct{ Servers []struct{ Mode, Zxid string } }
	if err := json.Unmarshal([]byte(b.run("top", "-once")), &sample); err != nil || len(sample.Servers) != 1 || sample.Servers[0].Mode != "standalone" || !strings.HasPrefix(sample.Servers[0].Zxid, "0x") {
		t.Errorf("%+v, %v", sample, err)
	}
	// On a terminal, top uses the alternate screen and restores the terminal.
	b = newBench(t)
	b.shell.cfg.Term = terminal.Term{Width: 30, Height: 4}
	out = b.run("top", "-n", "2", "-i", "10ms")
	if !strings.HasPrefix(out, "\x1b[?1049h") || !strings.HasSuffix(out, "\x1b[?1049l") || strings.Count(out, "\x1b[H") != 2 {
		t.Errorf("%q", out)
	}
	for _, line := range strings.Split(out, "\x1b[K\r\n") {
		if plain := line[strings.LastIndexByte(line, '\x1b')+1:]; len([]rune(plain)) > 32 {
			t.Errorf("a line of %d columns: %q", len([]rune(plain)), plain)
		}
	}
}

// TestTopWithOneAddress checks that the other members are counted, and that a
// follower's leader counts as existing although it isn't shown.
func TestTopWithOneAddress(t *testing.T) {
	t.Parallel()
	cluster := zktest.RunCluster(t, 3)
	for i, s := range cluster.Servers() {
		addr := cluster.Addrs()[i]
		var out, errs shared
		shell := New(Config{Server: addr, Out: &out, Err: &errs, Quiet: true})
		if err := shell.Connect(addr); err != nil {
			t.Fatal(err)
		}
		code := shell.Command(t.Context(), []string{"top", "-once"})
		text := out.take()
		if code != 0 || !strings.Contains(text, "2 more members with unknown client address") || strings.Contains(text, "no leader") {
			t.Errorf("server %d, %d: %s%s", i+1, code, text, errs.take())
		}
		leads := s.Server().Node().Status().Leader == uint64(i+1)
		if want := map[bool]string{true: "leader " + addr, false: "the leader is another member"}[leads]; !strings.Contains(text, want) {
			t.Errorf("server %d: %q is not in\n%s", i+1, want, text)
		}
		if err := shell.Close(); err != nil {
			t.Error(err)
		}
	}
	all := strings.Join(cluster.Addrs(), ",")
	var out, errs shared
	shell := New(Config{Server: all, Out: &out, Err: &errs, Quiet: true})
	defer shell.Close() //nolint:errcheck // the test is done
	if err := shell.Connect(all); err != nil {
		t.Fatal(err)
	}
	if code := shell.Command(t.Context(), []string{"top", "-once"}); code != 0 {
		t.Errorf("%d: %s", code, errs.take())
	}
	if text := out.take(); !strings.Contains(text, "3 of 3 servers serving, leader 127.0.0.1:") || strings.Contains(text, "more member") {
		t.Error(text)
	}
}

// TestTopFits checks that a narrow terminal shows complete columns and lists the
// missing ones.
func TestTopFits(t *testing.T) {
	t.Parallel()
	n, f, z := int64(12), 1.5, overview.Zxid(0x1000a3f17)
	sample := &overview.Sample{Servers: []overview.Server{
		{Address: "zk1.example.org:2181", Mode: "follower", Zxid: &z, Connections: &n, LatencyAvg: &f, LatencyMax: &f, Requests: &f, Version: "3.9.5"},
		{Address: "zk2.example.org:2181", Error: "connection refused"},
	}}
	whole := sampleText(sample, 0)
	for _, c := range columns() {
		if !strings.Contains(whole, c.head) {
			t.Errorf("%q is not in\n%s", c.head, whole)
		}
	}
	narrow := sampleText(sample, 80)
	table, rest, ok := strings.Cut(narrow, "hidden at 80 columns: ")
	if !ok || !strings.Contains(rest, "version") || !strings.Contains(table, "behind tx") {
		t.Errorf("80 columns:\n%s", narrow)
	}
	for line := range strings.Lines(table) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestMemberHosts(t *testing.T) {
	t.Parallel()
	config := "server.1=zk1:2888:3888:participant\nserver.2=[::1]:2888:3888:participant;0.0.0.0:2181\nserver.3=a:1:2|b:1:2\nversion=0\n"
	if got := memberHosts(config); !slices.Equal(got, []string{"zk1", "::1", "a"}) {
		t.Errorf("%q", got)
	}
}

package clitools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

const total = many + others

// TestTools runs every tool on both servers, in an order that leaves the tree complete after
// each part.
func TestTools(t *testing.T) {
	need(t)
	sides := pair(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, []*side)
	}{
		{"look", look}, {"copy", copyTree}, {"sequences", sequences}, {"files", files}, {"between", between},
		{"large", largeTree}, {"edit", edit}, {"watch", watch}, {"top", top}, {"move", move}, {"remove", remove},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, sides) })
	}
}

// look tests tree, find and du.
func look(t *testing.T, sides []*side) {
	out := ok(t, sides, "tree", "-data", "/app")
	if want := fmt.Sprintf("\n%d znodes, ", total); !strings.Contains(out, want) || !strings.Contains(out, "├── live  [ephemeral 0x") {
		t.Errorf("tree: %s", shorten(out))
	}
	ok(t, sides, "tree", "-depth", "1", "-l", "/app")
	ok(t, sides, "tree", "-depth", "1", "/")
	ok(t, sides, "du", "-depth", "2", "/app")
	for condition, want := range map[string]int{
		"-ephemeral": ephemerals, "-name 0000?": 10, "-regex ^/app/many/0000[0-9]$": 10, "-data ☃": 1, "-larger 1000000": 1,
		"-acl digest:ann": 1, "-children 2": 3, "-leaf": total - 5, "-newer 24h": total, "-older 24h": 0,
	} {
		if out := ok(t, sides, append(append([]string{"find"}, strings.Fields(condition)...), "-count", "/app")...); strings.TrimSpace(out) != fmt.Sprint(want) {
			t.Errorf("find %s: %s, want %d", condition, out, want)
		}
	}
	if r := same(t, sides, "tree", "/none"); r.code != 1 {
		t.Errorf("%+v", r)
	}
}

// copyTree tests cp, diff and rm within an ensemble.
func copyTree(t *testing.T, sides []*side) {
	if out := ok(t, sides, "cp", "-dry-run", "/app", "/copy"); strings.Count(out, "\ncreate ")+1 != total-ephemerals {
		t.Errorf("a dry run: %s", shorten(out))
	}
	if r := same(t, sides, "diff", "/app", "/copy"); r.code != 2 {
		t.Errorf("the dry run has created something: %+v", r)
	}
	if out := ok(t, sides, "cp", "/app", "/copy"); !strings.HasPrefix(out, fmt.Sprintf("done: %d created, ", total-ephemerals)) {
		t.Errorf("cp: %s", out)
	}
	ok(t, sides, "diff", "-noephemerals", "/app", "/copy")
	if r := same(t, sides, "diff", "/app", "/copy"); r.code != 1 || r.out != "- /live\n" {
		t.Errorf("diff: %+v", r)
	}
	if r := same(t, sides, "cp", "/app", "/copy"); r.code != 1 || !strings.Contains(r.err, "/copy: already exists") {
		t.Errorf("copied onto what is there: %+v", r)
	}
	for _, s := range sides {
		change(t, s.zk)
	}
	if r := same(t, sides, "diff", "-noephemerals", "/app", "/copy"); r.code != 1 || strings.Count(r.out, "\n") != 9 {
		t.Errorf("diff: %+v", r)
	}
	if out := ok(t, sides, "cp", "-overwrite", "-prune", "/app", "/copy"); !strings.HasPrefix(out, "done: 1 created, 1 written, 1 ACLs set, 2 deleted; ") {
		t.Errorf("cp -overwrite -prune: %s", out)
	}
	ok(t, sides, "diff", "-noephemerals", "/app", "/copy")
	if out := ok(t, sides, "rm", "-r", "/copy"); out != fmt.Sprintf("%d znodes deleted\n", total-ephemerals) {
		t.Errorf("rm: %s", out)
	}
}

// change makes /copy differ: data, an ACL, one znode less, two more.
func change(t *testing.T, zk *client.Client) {
	t.Helper()
	_, err := zk.Multi(t.Context(), client.SetOp("/copy/text", []byte("other"), -1), client.DeleteOp("/copy/null", -1),
		client.CreateOp("/copy/more", nil), client.CreateOp("/copy/more/below", nil))
	if err == nil {
		_, err = zk.SetACL(t.Context(), "/copy/binary", client.WorldACL(client.PermRead|client.PermAdmin|client.PermWrite), -1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sequences: the note about sequence numbers that would be assigned again should be true.
func sequences(t *testing.T, sides []*side) {
	for _, s := range sides {
		ctx := t.Context()
		_, err := s.zk.Create(ctx, "/seq", nil)
		for range 5 {
			if err == nil {
				_, err = s.zk.Create(ctx, "/seq/n-", nil, client.Sequential)
			}
		}
		for i := range 3 {
			if err == nil {
				err = s.zk.Delete(ctx, fmt.Sprintf("/seq/n-%010d", i), -1)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if r := same(t, sides, "cp", "/seq", "/behind"); r.code != 0 || !strings.Contains(r.err, "the next sequential znode in /behind gets the number 2, but 4 already exists") {
		t.Errorf("%+v", r)
	}
	for _, s := range sides {
		if path, err := s.zk.Create(t.Context(), "/behind/n-", nil, client.Sequential); err != nil || path != "/behind/n-0000000002" {
			t.Errorf("%s: %s, %v", s.name, path, err)
		}
		if _, err := s.zk.Create(t.Context(), "/behind/n-", nil, client.Sequential); !errors.Is(err, client.ErrNodeExists) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	ok(t, sides, "rm", "-r", "/seq")
	ok(t, sides, "rm", "-r", "/behind")
}

// files tests export, import, and diff with a file.
func files(t *testing.T, sides []*side) {
	for _, format := range []string{"json", "yaml"} {
		var text [2]string
		for i, s := range sides {
			name := filepath.Join(t.TempDir(), "app."+format)
			if r := s.run(t, "", "export", "-f", name, "/app"); r.code != 0 || !strings.Contains(r.err, fmt.Sprintf("%d znodes exported, %d of them ephemeral", total, ephemerals)) {
				t.Fatalf("%s: export: %+v", s.name, r)
			}
			if r := s.run(t, "", "diff", "/app", "file:"+name); r.code != 0 {
				t.Errorf("%s: what was exported differs: %+v", s.name, r)
			}
			data := must.Get(os.ReadFile(name))(t)
			text[i] = hexNumber.ReplaceAllString(string(data), "HEX")
			// An export from one side can be imported into the other.
			other := sides[1-i]
			if r := other.run(t, "", "import", "-dry-run", name, "/from/other"); r.code != 1 || !strings.Contains(r.err, "/from") {
				t.Errorf("%s: imported without a parent: %+v", other.name, r)
			}
			if r := other.run(t, "", "import", "-parents", name, "/from/other"); r.code != 0 {
				t.Fatalf("%s: import: %+v", other.name, r)
			}
			if r := command(t, "", "-q", "-server", other.addr, "diff", "-noephemerals", s.addr+"/app", "/from/other"); r.code != 0 {
				t.Errorf("imported into %s: %+v", other.name, r)
			}
			if r := other.run(t, string(data), "import", "-overwrite", "-prune", "-", "/from/other"); r.code != 0 || !strings.HasPrefix(r.out, "done: 0 created, 0 written, 0 ACLs set, 0 deleted; ") {
				t.Errorf("%s: a second import: %+v", other.name, r)
			}
			if r := other.run(t, string(data[:len(data)/2]), "import", "-", "/half"); r.code != 1 || !strings.Contains(r.err, "cut off") {
				t.Errorf("%s: half a file: %+v", other.name, r)
			}
			if r := other.run(t, "", "rm", "-r", "/from"); r.code != 0 {
				t.Errorf("%s: %+v", other.name, r)
			}
		}
		if text[0] != text[1] {
			t.Errorf("%s: the exports differ", format)
		}
	}
}

// between tests cp and mv from one ensemble to the other, and back.
func between(t *testing.T, sides []*side) {
	for i, s := range sides {
		other := sides[1-i]
		if r := s.run(t, "", "cp", "/app", other.addr+"/there"); r.code != 0 {
			t.Fatalf("from %s: %+v", s.name, r)
		}
		if r := s.run(t, "", "diff", "-noephemerals", "/app", other.addr+"/there"); r.code != 0 {
			t.Errorf("from %s: %+v", s.name, r)
		}
		if r := s.run(t, "", "mv", other.addr+"/there", "/back"); r.code != 0 || !strings.Contains(r.err, fmt.Sprintf("%d znodes deleted at the source", total-ephemerals)) {
			t.Errorf("to %s: %+v", s.name, r)
		}
		if r := s.run(t, "", "diff", "-noephemerals", "/app", "/back"); r.code != 0 {
			t.Errorf("to %s: %+v", s.name, r)
		}
		if r := other.run(t, "", "tree", "/there"); r.code != 1 {
			t.Errorf("%s still has it: %+v", other.name, r)
		}
		if r := s.run(t, "", "rm", "-r", "/back"); r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// largeTree moves 10,000 znodes from one ensemble to the other in every way.
func largeTree(t *testing.T, sides []*side) {
	for i, s := range sides {
		other := sides[1-i]
		step := func(want string, args ...string) {
			t.Helper()
			if r := s.run(t, "", args...); r.code != 0 || !strings.Contains(r.out+r.err, want) {
				t.Errorf("%s: %q: %d: %s%s", s.name, args, r.code, shorten(r.out), r.err)
			}
		}
		number := fmt.Sprint(large + 1)
		file := filepath.Join(t.TempDir(), "large.yaml")
		step(number, "find", "-count", "/large")
		step("done: "+number+" created", "cp", "/large", other.addr+"/there")
		step(number+" znodes deleted at the source", "mv", other.addr+"/there", "/back")
		step(number+" znodes exported", "export", "-f", file, "/back")
		step(number+" znodes compared, no difference", "diff", "file:"+file, "/large")
		step(number+" znodes deleted", "rm", "-r", "/back")
		step("done: "+number+" created", "import", file)
		step(number+" znodes deleted", "rm", "-r", "/back")
	}
}

// edit tests a change, no change, and a conflict with another writer.
func edit(t *testing.T, sides []*side) {
	script := func(text string) string {
		name := filepath.Join(t.TempDir(), "editor")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // the test runs it
			t.Fatal(err)
		}
		return name
	}
	ok(t, sides, "edit", "-editor", "true", "/app/text")
	if out := ok(t, sides, "edit", "-create", "-editor", script(`echo new >"$1"`), "/edited"); out != "/edited written, version 0\n" {
		t.Errorf("%s", out)
	}
	for _, s := range sides {
		other := script(fmt.Sprintf(`%s cli -q -server %s set /edited theirs && echo mine >"$1"`, process.Binary(t), s.addr))
		r := s.run(t, "", "edit", "-editor", other, "/edited")
		if data, _, err := s.zk.Get(t.Context(), "/edited"); r.code != 1 || !strings.Contains(r.err, "another client") || string(data) != "theirs" || err != nil {
			t.Errorf("%s: %+v, %q, %v", s.name, r, data, err)
		}
		_, kept, _ := strings.Cut(r.err, "is in ")
		kept = strings.TrimSpace(kept)
		if mine, err := os.ReadFile(kept); err != nil || string(mine) != "mine\n" {
			t.Errorf("%s: what was written is lost: %q, %v", s.name, mine, err)
		}
		os.RemoveAll(filepath.Dir(kept))
	}
	ok(t, sides, "rm", "/edited")
}

// watch tests that both servers deliver events as they occur.
func watch(t *testing.T, sides []*side) {
	var seen [2][]string
	for i, s := range sides {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, process.Binary(t), "cli", "-q", "-o", "json", "-server", s.addr, "watch", "-data", "-n", "4", "/app")
		out := must.Get(cmd.StdoutPipe())(t)
		errs := must.Get(cmd.StderrPipe())(t)
		must.Do(t, cmd.Start())
		if line, err := bufio.NewReader(errs).ReadString('\n'); err != nil || line != "watching /app\n" {
			t.Errorf("%s: %q, %v", s.name, line, err)
		}
		for _, err := range []error{
			second(s.zk.Create(ctx, "/app/watched", []byte("1"))), second(s.zk.Set(ctx, "/app/watched", []byte("2"), -1)),
			s.zk.Delete(ctx, "/app/watched", -1), second(s.zk.Set(ctx, "/app/q", nil, -1)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var e struct{ Event, Path, Zxid string }
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Zxid == "" {
				t.Errorf("%s: %s: %v", s.name, lines.Text(), err)
			}
			seen[i] = append(seen[i], e.Event+" "+e.Path)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	want := "NodeCreated /app/watched,NodeDataChanged /app/watched,NodeDeleted /app/watched,NodeDataChanged /app/q"
	for i, s := range sides {
		if got := strings.Join(seen[i], ","); got != want {
			t.Errorf("%s: %s", s.name, got)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// top tests top with four-letter words and with the AdminServer.
func top(t *testing.T, sides []*side) {
	for _, s := range sides {
		for _, args := range [][]string{{"top", "-n", "2", "-i", "100ms"}, {"top", "-n", "2", "-i", "100ms", "-admin", s.admin}} {
			r := s.run(t, "", append([]string{"-o", "json"}, args...)...)
			lines := strings.Split(strings.TrimSpace(r.out), "\n")
			if r.code != 0 || len(lines) != 2 {
				t.Fatalf("%s: %q: %+v", s.name, args, r)
			}
			var sample struct{ Servers []map[string]any }
			if err := json.Unmarshal([]byte(lines[1]), &sample); err != nil || len(sample.Servers) != 1 {
				t.Fatalf("%s: %q: %s, %v", s.name, args, lines[1], err)
			}
			server := sample.Servers[0]
			for _, key := range []string{"version", "zxid", "latencyAvg", "latencyMax", "received", "connections", "outstanding", "watches", "ephemerals", "requestsPerSecond", "dataBytes"} {
				if _, ok := server[key]; !ok {
					t.Errorf("%s: %q: there is no %s: %v", s.name, args, key, server)
				}
			}
			if server["mode"] != "standalone" || server["ephemerals"] != 1.0 || server["znodes"].(float64) < large || server["error"] != nil || server["note"] != nil {
				t.Errorf("%s: %q: %v", s.name, args, server)
			}
		}
		if r := s.run(t, "", "top", "-once"); r.code != 0 || !strings.Contains(r.out, "1 of 1 server serving, standalone") {
			t.Errorf("%s: %+v", s.name, r)
		}
	}
}

// move tests mv: it refuses an ephemeral znode, and succeeds otherwise.
func move(t *testing.T, sides []*side) {
	if r := same(t, sides, "mv", "/app", "/moved"); r.code != 1 || !strings.Contains(r.err, "/app/live: is an ephemeral znode of session") {
		t.Errorf("%+v", r)
	}
	ok(t, sides, "rm", "/app/live")
	ok(t, sides, "export", "/app")
	before := ok(t, sides, "export", "/app")
	if r := same(t, sides, "mv", "/app", "/moved"); r.code != 0 || !strings.Contains(r.err, fmt.Sprintf("%d znodes deleted at the source", total-ephemerals)) {
		t.Errorf("%+v", r)
	}
	after := ok(t, sides, "export", "/moved")
	if strings.Replace(after, `"root":"/moved"`, `"root":"/app"`, 1) != before {
		t.Error("what was moved is not the same")
	}
}

// remove tests rm of everything that is left.
func remove(t *testing.T, sides []*side) {
	if r := same(t, sides, "rm", "/moved"); r.code != 1 {
		t.Errorf("without -r: %+v", r)
	}
	ok(t, sides, "rm", "-r", "-below", "/")
	if out := ok(t, sides, "tree", "/"); !strings.HasPrefix(out, "/\n\n1 znode, ") {
		t.Errorf("%s", out)
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/formats"
)

// live starts a server with an AdminServer on dir, creates a znode and returns the
// AdminServer's address.
func live(t *testing.T, dir string) (admin string) {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{
		ClientAddr: "127.0.0.1:0", DataDir: dir, Log: server.Log{Dir: dir}, Admin: &server.Admin{Addr: "127.0.0.1:0"},
		Auth: server.Auth{SuperDigest: "root:qScoE+LkbrbWBh/au3OD5Aq2Yx0="}, Env: server.Env{Formats: formats.All()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	<-s.Ready()
	c, err := client.Connect(t.Context(), s.ClientAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.EnsurePath(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	return s.AdminAddr()
}

// TestBackupAndRestore backs up a live server, verifies, restores and inspects the backup, and
// checks the errors of each command.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	source, target := filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "target")
	file := filepath.Join(t.TempDir(), "a.zkb")
	admin := live(t, source)
	works := func(say string, args ...string) string {
		t.Helper()
		out, diag, err := zkgo(t, args...)
		if err != nil || !strings.Contains(out, say) {
			t.Fatalf("zkgo %s: %v\n%s%s", strings.Join(args, " "), err, out, diag)
		}
		return out
	}
	fails := func(say string, args ...string) {
		t.Helper()
		if out, _, err := zkgo(t, args...); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("zkgo %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	works("compared with its digest", "backup", "--auth", "digest:root:pw", "--from", "127.0.0.1:1", "--from", admin, file)
	fails("--force", "backup", "--from", admin, file)
	fails("superDigest", "backup", "--auth", "digest:some:body", "--from", admin, file+"2")
	fails("--auth", "backup", "--from", admin, file+"2")
	works("a.zkb: zxid", "backup", "--auth", "digest:root:pw", "--force", "--from", admin, file)
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside the backup: %v, %v", left, err)
	}
	works("digest matches", "backup", "verify", file)
	var info struct {
		Znodes   int
		Verified bool `json:"digestVerified"`
	}
	if err := json.Unmarshal([]byte(works("{", "backup", "verify", file, "-o", "json")), &info); err != nil || info.Znodes != 5 || !info.Verified {
		t.Errorf("%+v, %v", info, err)
	}
	works("backup at zxid", "restore", "--dry-run", file, "--data-dir", target)
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("a dry run made something: %v", err)
	}
	fails(raftfsm.ErrHasState.Error()+" with --data-dir", "restore", file, "--data-dir", source)
	works("Restored to", "restore", file, "--data-dir", target)
	fails(raftfsm.ErrHasState.Error(), "restore", file, "--data-dir", target)
	fails("no such file", "restore", filepath.Join(target, "nosuch"), "--data-dir", source+"2")
	works("snapshot.", "backup", "extract", file, filepath.Join(t.TempDir(), "version-2"))

	works("0 znodes differ", "inspect", "diff", file, target)
	works(`"/zookeeper"`, "inspect", "snapshot", target)
	works("snapshot", "inspect", "list", target)
	works("log", "inspect", "verify", source, "-o", "json")
	works("becomes the leader", "inspect", "log", source, "--all")
	works(`"op":"leader"`, "inspect", "log", source, "--all", "-o", "json")
	fails("want text or json", "inspect", "list", target, "-o", "xml")
	fails("--from", "inspect", "log", source, "--from", "zz")

	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	bad := filepath.Join(t.TempDir(), "bad.zkb")
	if err := os.WriteFile(bad, b, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(bad, "restore", bad, "--data-dir", filepath.Join(t.TempDir(), "never"))
	fails("damaged", "inspect", "verify", bad)
	fails(bad, "backup", "verify", bad)

	// A backup gets its name once it is verified, and replaces no other.
	verified := filepath.Join(filepath.Dir(bad), "b.zkb")
	fails(bad, "backup", "verify", bad, "--rename", verified, "--keep", "1")
	if got := names(t, filepath.Dir(bad)); !slices.Equal(got, []string{"bad.zkb"}) {
		t.Errorf("after a damaged backup, there are %q", got)
	}
	whole := filepath.Join(filepath.Dir(file), "whole.unverified")
	if err := os.Link(file, whole); err != nil {
		t.Fatal(err)
	}
	fails(os.ErrExist.Error(), "backup", "verify", whole, "--rename", file)
	works("digest matches", "backup", "verify", whole, "--rename", filepath.Join(filepath.Dir(file), "whole.zkb"), "--keep", "1")
	if got := names(t, filepath.Dir(file)); !slices.Equal(got, []string{"whole.zkb"}) {
		t.Errorf("after a verified backup, there are %q", got)
	}

	if b = []byte(live(t, target)); len(b) == 0 { // the server starts
		t.Error("no address")
	}
}

// TestBackupFlags checks that credentials come from the flag and that certificates
// are verified.
func TestBackupFlags(t *testing.T) {
	t.Parallel()
	var got string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "a.zkb")
	if _, _, err := zkgo(t, "backup", "--from", s.URL, file); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
	if _, _, err := zkgo(t, "backup", "--from", s.URL, "--tls-insecure", "--auth", "digest a:b", file); err == nil || !strings.Contains(err.Error(), "403") ||
		!strings.Contains(err.Error(), "its password is wrong") || got != "digest a:b" {
		t.Errorf("%v, as %q", err, got)
	}
	if _, _, err := zkgo(t, "backup", "--from", s.URL, "--tls-insecure", file); err == nil || !strings.Contains(err.Error(), "authenticate with --auth") {
		t.Errorf("%v", err)
	}
	if _, _, err := zkgo(t, "backup", file); err == nil || !strings.Contains(err.Error(), "from") {
		t.Errorf("%v", err)
	}
	if _, _, err := zkgo(t, "backup", "--from", s.URL, "--tls-ca", file, file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}

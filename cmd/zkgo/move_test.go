package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/raftfsm"
)

// zookeeper returns a directory written by a real ZooKeeper 3.9.5.
func zookeeper(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../internal/offline/zkfiles/testdata/3.9.5")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content returns all files below dir with their contents.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	from, data := zookeeper(t), filepath.Join(t.TempDir(), "data")
	before := content(t, from)
	out, diag, err := zkgo(t, "import", "--from", from, "--data-dir", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"up to zxid 0x22", "16 znodes, 1 of them ephemeral, and 1 session", "The digest matches the source", "first zxid 0x100000000"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if diag != "" {
		t.Errorf("stderr: %s", diag)
	}
	for path, b := range content(t, from) {
		if before[path] != b {
			t.Errorf("%s was changed", path)
		}
	}
	if _, _, err := zkgo(t, "import", "--from", from, "--data-dir", data); !errors.Is(err, raftfsm.ErrHasState) {
		t.Errorf("a second time: %v", err)
	}
	back := t.TempDir()
	out, diag, err = zkgo(t, "export", "--to-zookeeper", back, "--data-dir", data, "--compression", "gz")
	if err != nil || !strings.Contains(out, "version-2/snapshot.100000000.gz: 16 znodes and 1 session at zxid 0x100000000") {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(diag, "extendedTypesEnabled=true") {
		t.Errorf("stderr: %s", diag)
	}
	if got := content(t, back); len(got) != 3 || got["version-2/currentEpoch"] != "1" || got["version-2/acceptedEpoch"] != "1" {
		t.Errorf("%v", got)
	}
	if _, _, err := zkgo(t, "export", "--to-zookeeper", back, "--data-dir", data); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second time: %v", err)
	}
	// It's a normal ZooKeeper directory, but has no logs.
	again := filepath.Join(t.TempDir(), "again")
	if _, _, err := zkgo(t, "import", "--from", back, "--data-dir", again); err == nil || !strings.Contains(err.Error(), "no transaction logs") {
		t.Errorf("without logs: %v", err)
	}
	if out, _, err := zkgo(t, "import", "--from", back, "--no-logs", "--data-dir", again); err != nil || !strings.Contains(out, "16 znodes, 1 of them ephemeral, and 1 session") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestImportInPlace imports with ZooKeeper's zoo.cfg as the only argument.
func TestImportInPlace(t *testing.T) {
	t.Parallel()
	dir := zookeeper(t)
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(cfg, []byte("tickTime=2000\nclientPort=0\nadmin.enableServer=false\ndataDir="+filepath.ToSlash(dir)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := zkgo(t, "server", cfg)
	if err == nil || !strings.Contains(err.Error(), "zkgo import --from "+dir) {
		t.Fatalf("a server starts where only ZooKeeper has been: %v", err)
	}
	if out, _, err := zkgo(t, "import", cfg); err != nil || !strings.Contains(out, "16 znodes") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, _, err := zkgo(t, "recover", "--dry-run", cfg); err != nil || !strings.Contains(out, "zxid 0x100000000") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct{ args, says string }{
		{"import", "no target"},
		{"import --data-dir " + none, "no source"},
		{"import --from " + none + " --data-dir " + none, none},
		{"import --from " + t.TempDir() + " --data-dir " + none, "no files of ZooKeeper"},
		{"import --from-log-dir a --no-logs", "none of the others can be"},
		{"export", "no target"},
		{"export --to-zookeeper " + none, "no source"},
		{"export --to-zookeeper " + none + " --data-dir " + t.TempDir(), "no state of zkgo"},
	} {
		if _, _, err := zkgo(t, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("zkgo %s: %v, want %q", c.args, err, c.says)
		}
		if _, err := os.Stat(none); err == nil {
			t.Fatalf("zkgo %s made the directory", c.args)
		}
	}
	dir := zookeeper(t)
	path := filepath.Join(dir, "version-2", "log.1f")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[50] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := zkgo(t, "import", "--from", dir, "--data-dir", none); err == nil || !strings.Contains(err.Error(), path+": at offset 16: a record of ") {
		t.Errorf("a damaged log: %v", err)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/server/zktest"
)

// fed runs a command line with a standard input, and returns its output.
func fed(t *testing.T, in io.Reader, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, diag bytes.Buffer
	err := run(ctx, args, in, &out, &diag)
	return out.String(), err
}

// TestBackupFromStandardInput verifies, restores and extracts a backup that comes through
// the standard input, and refuses a damaged one.
func TestBackupFromStandardInput(t *testing.T) {
	t.Parallel()
	file, target := filepath.Join(t.TempDir(), "a.zkb"), filepath.Join(t.TempDir(), "target")
	if _, _, err := zkgo(t, "backup", "--auth", "digest:root:pw", "--from", live(t, t.TempDir()), file); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(cfg, []byte("clientPort=0\ndataDir="+filepath.ToSlash(target)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	extracted := t.TempDir()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"the standard input: backup at zxid", []string{"backup", "verify", "-"}},
		{"backup at zxid", []string{"restore", "--dry-run", "-", "--data-dir", target}},
		{"Restored to ", []string{"restore", "-", cfg}},
		{"snapshot.", []string{"backup", "extract", "-", extracted}},
	} {
		if _, err := fed(t, bytes.NewReader(archive[:len(archive)-10]), c.args...); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("zkgo %s of a part: %v", c.args, err)
		}
		if out, err := fed(t, bytes.NewReader(archive), c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("zkgo %s: %v\n%s", c.args, err, out)
		}
	}
	if left, err := os.ReadDir(extracted); err != nil || len(left) != 1 {
		t.Errorf("extracted: %v, %v", left, err)
	}
	if admin := live(t, target); admin == "" { // the server starts
		t.Error("no address")
	}
}

// TestConfigFromStandardInput checks the commands that read a zoo.cfg once.
func TestConfigFromStandardInput(t *testing.T) {
	t.Parallel()
	text := "clientPort=12345\ndataDir=" + filepath.ToSlash(filepath.Join(t.TempDir(), "data")) + "\n"
	for _, c := range []struct{ args, text, want, refused string }{
		{"config check -", text, "12345", ""},
		{"config show --config -", text, "(the standard input:1)", ""},
		{"config check -", text + "tickTime=x\n", "", "the standard input:3"},
		{"recover --dry-run -", text, "", "no state"},
		{"import --from " + filepath.ToSlash(filepath.Join(t.TempDir(), "nothing")) + " -", text, "", "nothing"},
		{"health -", "clientPort=1\ndataDir=/x\n", "", "localhost:1: connection refused"},
	} {
		out, err := fed(t, strings.NewReader(c.text), strings.Fields(c.args)...)
		switch code, _ := codeOf(err); {
		case c.refused == "" && (err != nil || !strings.Contains(out, c.want)):
			t.Errorf("zkgo %s: %v\n%s", c.args, err, out)
		case c.refused != "" && (err == nil || code != 1 || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("zkgo %s: %v\n%s", c.args, err, out)
		}
	}
	if _, err := fed(t, endless{}, "config", "check", "-"); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("an input without an end: %v", err)
	}
}

// endless is an input without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestRefusesStandardInput checks that what needs a real file says so with exit code 2 if
// it is "-".
func TestRefusesStandardInput(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"server -", "server --config -", "testserver -", "restore - -", "restore - --config -", "man -",
		"inspect list -", "inspect snapshot -", "inspect diff a -", "inspect diff - a", "inspect log -", "inspect verify -", "inspect list --data-log-dir - x",
		"import --from - --data-dir x", "import --from x --data-dir -", "export --to-zookeeper - --data-dir x", "recover --compare x --compare - --data-dir y",
		"backup extract x -", "backup x --from y --tls-ca -", "backup x --from y --auth -", "backup x --from y --auth @-",
		"bench get --tls-ca -", "bench get --auth @-", "cli --tls-ca - ls /", "cli --auth - ls /", "cli --auth @- ls /", "cli --sasl - ls /", "cli --client-configuration - ls /",
		"cli --history -",
	} {
		out, err := fed(t, strings.NewReader("x"), strings.Fields(args)...)
		code, tell := codeOf(err)
		if err == nil || code != 2 || !tell || out != "" || !strings.Contains(err.Error(), "standard input") && !strings.Contains(err.Error(), "must be a file") {
			t.Errorf("zkgo %s: %d, %v\n%s", args, code, err, out)
		}
	}
}

// TestScriptHasNoStandardInput checks that import of the standard input is refused with
// exit code 2 where the commands come from there.
func TestScriptHasNoStandardInput(t *testing.T) {
	t.Parallel()
	_, err := fed(t, strings.NewReader("import - /x\n"), "cli", "-q", "-server", zktest.Run(t).Addrs()[0])
	if code, _ := codeOf(err); code != 2 {
		t.Errorf("%d, %v", code, err)
	}
}

// TestInterruptEndsInput checks that a command that reads the standard input ends with its
// context, although no input comes.
func TestInterruptEndsInput(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"config check -", "backup verify -", "backup extract - " + t.TempDir(), "restore - --data-dir " + filepath.Join(t.TempDir(), "x")} {
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(ctx, strings.Fields(args), in, io.Discard, io.Discard) }()
		if _, err := feed.Write([]byte("#")); err != nil { // the command reads
			t.Error(err)
		}
		cancel()
		if err := <-done; err == nil || !errors.Is(err, context.Canceled) {
			t.Errorf("zkgo %s: %v", args, err)
		}
		feed.Close() //nolint:errcheck // ends the read
	}
}

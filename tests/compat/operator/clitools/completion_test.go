package clitools

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// bashCompletion is the library that cobra's script for bash needs.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// inBash completes a line like bash when the user presses Tab, and prints each candidate.
const inBash = `source ` + bashCompletion + `
source completion
compopt() { :; }
COMP_LINE="zkgo get $1" COMP_WORDS=(zkgo get "$1") COMP_CWORD=2 COMP_TYPE=9 COMP_KEY=9
COMP_POINT=${#COMP_LINE}
__start_zkgo
printf '%s\n' "${COMPREPLY[@]}"
`

// TestShellsQuotePaths completes paths with special characters in real shells: the inserted text
// must be one word again.
func TestShellsQuotePaths(t *testing.T) {
	process.Needed(t)
	paths := []string{"/app/with space", "/app/it's", "/app/dollar$x", "/app/par(en)", `/app/quo"te`, "/app/star*", "/app/plain"}
	addr := process.Start(t, t.TempDir()).Addr
	dir := t.TempDir()
	must.Do(t, os.Symlink(process.Binary(t), filepath.Join(dir, "zkgo")))
	run := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "ZKGO_SERVER="+addr, "ZKGO_CONFIG="+filepath.Join(dir, "none"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", name, args, err)
		}
		return strings.TrimRight(string(out), "\n")
	}
	zkgo := filepath.Join(dir, "zkgo")
	for _, path := range paths {
		run(zkgo, "create", "--parents", path)
	}
	for shell, script := range map[string]string{
		"bash": inBash,
		"fish": "source completion\ncomplete -C \"zkgo get $argv[1]\"\n",
	} {
		t.Run(shell, func(t *testing.T) {
			binary, err := exec.LookPath(shell)
			if err != nil {
				t.Logf("not compared: no %s here", shell)
				return
			}
			if _, err := os.Stat(bashCompletion); shell == "bash" && err != nil {
				t.Logf("not compared: the package bash-completion is not here: %v", err)
				return
			}
			must.Do(t, os.WriteFile(filepath.Join(dir, "completion"), []byte(run(zkgo, "completion", shell)), 0o600))
			for _, path := range paths {
				begun := path[:len("/app/")+2]
				args := []string{"-c", script, shell, begun}
				if shell == "fish" {
					args = []string{"-c", script, begun}
				}
				word := run(binary, args...)
				if shell == "bash" { // the word as bash reads it
					word = run(binary, "-c", "printf %s "+word)
				}
				if word != path {
					t.Errorf("%s becomes %q, want %q", begun, word, path)
				}
			}
		})
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/server/zktest"
)

// contextFile writes a configuration file and makes it the user's.
func contextFile(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZKGO_CONFIG", path)
}

// shownBy runs zkgo context show and returns its settings.
func shownBy(t *testing.T, args ...string) map[string]shownSetting {
	t.Helper()
	out, _, err := zkgo(t, append([]string{"context", "show", "-o", "json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var list []shownSetting
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	settings := map[string]shownSetting{}
	for _, s := range list {
		settings[s.Name] = s
	}
	return settings
}

const twoContexts = `current-context: prod
contexts:
  prod:
    server: zk1:2281
    tls-ca: ca.pem
    timeout: 3s
    auth: [digest:ann:secret, "@more"]
  dev:
    server: dev:2181
`

// TestPrecedence checks that a flag overrides a variable, a variable the context, and the
// context the default.
func TestPrecedence(t *testing.T) {
	contextFile(t, twoContexts)
	dir := filepath.Dir(os.Getenv("ZKGO_CONFIG"))
	check := func(variables string, args, want string) {
		t.Helper()
		t.Run(variables+args, func(t *testing.T) {
			for v := range strings.FieldsSeq(variables) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			got := shownBy(t, strings.Fields(args)...)
			for w := range strings.SplitSeq(want, "; ") {
				name, rest, _ := strings.Cut(w, "=")
				value, origin, _ := strings.Cut(rest, " from ")
				if s := got[name]; s.Value != value || s.Origin != origin {
					t.Errorf("%s=%s from %s, want %s", name, s.Value, s.Origin, w)
				}
			}
		})
	}
	ca := "tls-ca=" + filepath.Join(dir, "ca.pem") + " from context prod"
	check("", "", "server=zk1:2281 from context prod; timeout=3s from context prod; session-timeout=30s from default; "+ca+
		"; auth=digest:******, @"+filepath.Join(dir, "more")+" from context prod")
	check("ZKGO_TIMEOUT=4s", "", "timeout=4s from ZKGO_TIMEOUT; "+ca)
	check("ZKGO_TIMEOUT=4s", "--timeout 5s", "timeout=5s from --timeout; "+ca)
	check("ZKGO_TLS=true ZKGO_AUTH=digest:bob:x", "", "tls=true from ZKGO_TLS; auth=digest:****** from ZKGO_AUTH")
	check("", "dev", "context=dev from the command line; server=dev:2181 from context dev; tls-ca= from default; auth= from default")
	check("ZKGO_CONTEXT=dev", "", "context=dev from ZKGO_CONTEXT; server=dev:2181 from context dev")
	check("ZKGO_CONTEXT=dev", "--context prod", "server=zk1:2281 from context prod")
	// The current context's credentials are for its own servers.
	check("ZKGO_SERVER=other:1", "", "server=other:1 from ZKGO_SERVER; tls-ca= from default; context= from the servers are named without one")
	check("", "--server other:1", "server=other:1 from --server; tls-ca= from default")
	check("ZKGO_CONTEXT=prod", "--server other:1", "server=other:1 from --server; "+ca)
}

// TestSettingsRefused checks the errors about wrong variables and contexts.
func TestSettingsRefused(t *testing.T) {
	contextFile(t, strings.Replace(twoContexts, "timeout: 3s", "timeout: 3", 1))
	for _, c := range []struct {
		variables, args, want string
		code                  int
	}{
		{"ZKGO_TIMEOUT=5", "get /x", `ZKGO_TIMEOUT="5": want a duration above 0`, 2},
		{"ZKGO_TLS=perhaps", "bench get", `ZKGO_TLS="perhaps"`, 2},
		{"ZKGO_CONTEXT=prd", "ls", "Did you mean prod?", 2},
		{"", "health --context prd", "Did you mean prod?", 2},
		{"", "get /x", "the context prod: timeout: want a duration above 0", 1},
		{"", "context use prd", "Did you mean prod?", 1},
		{"", "cli --context dev --output jso ls /", "Did you mean json?", 2},
		{"ZKGO_SERVER=/app", "ls", "want host:port", 2},
		{"ZKGO_SASL=a:b", "bench get -s localhost:1", "ZKGO_SASL has SASL credentials", 2},
		{"", "backup --context dev x", "--from, ZKGO_ADMIN or admin in a context", 2},
	} {
		t.Run(c.variables+" "+c.args, func(t *testing.T) {
			for v := range strings.FieldsSeq(c.variables) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			out, said, err := zkgo(t, strings.Fields(c.args)...)
			if code, _ := codeOf(err); err == nil || code != c.code || !strings.Contains(said+err.Error(), c.want) || out != "" {
				t.Errorf("%d, %v, %q, want %d, %q", code, err, out, c.code, c.want)
			}
		})
	}
}

// TestContexts checks that commands use contexts and variables, and the list and the choice
// of contexts.
func TestContexts(t *testing.T) {
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/app": "12"})
	addr := zs.Addrs()[0]
	contextFile(t, fmt.Sprintf("contexts:\n  a:\n    server: %s\n    auth-command: echo digest:ann:x\n  b:\n    server: localhost:1\n", addr))
	expect := func(want string, args ...string) {
		t.Helper()
		if out, said, err := zkgo(t, args...); err != nil || out != want {
			t.Errorf("%q: %q, %q, %v, want %q", args, out, said, err, want)
		}
	}
	expect("  a  "+addr+"\n  b  localhost:1\n", "context", "ls")
	expect("", "context", "use", "a")
	expect("* a  "+addr+"\n  b  localhost:1\n", "context", "ls")
	expect("12\n", "get", "/app")
	expect("12\n", "cli", "-q", "get", "/app")
	expect("Mode: standalone\n", "health")
	if out, said, err := zkgo(t, "whoami"); err != nil || !strings.Contains(out, "digest: ann\n") {
		t.Errorf("%q, %q, %v", out, said, err)
	}
	expect("", "context", "use", "b")
	if _, _, err := zkgo(t, "get", "/app", "--timeout", "1s"); err == nil {
		t.Error("the other context has no server")
	}
	expect("12\n", "get", "/app", "--context", "a")
	t.Setenv("ZKGO_SERVER", addr+"/app")
	expect("[]\n", "ls")
	if _, _, err := zkgo(t, "bench", "create", "--duration", "20ms", "--warmup", "1ms", "-q"); err != nil {
		t.Error(err)
	}
	expect("[]\n", "ls")
}

// TestBackupContext checks that a backup uses a context that names the AdminServer.
func TestBackupContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.zkb")
	contextFile(t, fmt.Sprintf("current-context: a\ncontexts:\n  a:\n    admin: %s\n    auth: digest:root:pw\n", live(t, t.TempDir())))
	if _, _, err := zkgo(t, "backup", file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestFlagsAgree checks that a flag is the same for all commands that have it: its
// shorthand, its help and its variable.
func TestFlagsAgree(t *testing.T) {
	t.Parallel()
	const option, place = "an option of the shell's commands, which differ in what it does", "the help says whose, or what for"
	own := map[string]string{
		"from": "a directory for import, URLs for backup, a zxid for inspect log", "output": "bench also has csv",
		"data-dir": place, "client-port": place, "dry-run": place, "path": place,
		"all": option, "base64": option, "bytes": option, "count": option, "data": option, "depth": option, "ephemeral": option, "hard-bytes": option, "hard-count": option,
		"noacl": option, "parents": option, "quiet": "progress for all but testserver", "recursive": option, "version": option,
	}
	needed := map[string]bool{}
	type seen struct{ command, short, usage string }
	first, shorts := map[string]seen{}, map[string]string{}
	visit(newCommand(), func(cmd *cobra.Command) {
		cmd.InheritedFlags() // adds them to the command's flags
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden {
				return
			}
			short := flag.Shorthand
			if cmd.Name() == "cli" && flag.Name == "readonly" && short == "r" {
				short = "" // of zkCli.sh
			}
			now, before := seen{cmd.CommandPath(), short, flag.Usage}, first[flag.Name]
			if before.command == "" {
				first[flag.Name] = now
				before = now
			}
			if slices.Contains(clientSettings, flag.Name) && !strings.Contains(flag.Usage, "["+variable(flag.Name)+"]") {
				t.Errorf("%s --%s: the help names no variable", cmd.CommandPath(), flag.Name)
			}
			if common := map[string]string{"s": "server", "o": "output", "h": "help"}[short]; common != "" && common != flag.Name {
				t.Errorf("%s: -%s is --%s", cmd.CommandPath(), short, flag.Name)
			}
			if (flag.Name == "server" || flag.Name == "output") && short == "" {
				t.Errorf("%s --%s has no shorthand", cmd.CommandPath(), flag.Name)
			}
			shorts[short] = flag.Name
			if before.usage == now.usage && before.short == now.short {
				return
			}
			needed[flag.Name] = true
			if own[flag.Name] == "" {
				t.Errorf("%s --%s: -%s %q\n%s --%s: -%s %q", before.command, flag.Name, before.short, before.usage, now.command, flag.Name, now.short, now.usage)
			}
		})
	})
	for name, why := range own {
		if !needed[name] {
			t.Errorf("--%s needs no exception (%s)", name, why)
		}
	}
	if len(first) < 60 || shorts["s"] != "server" {
		t.Errorf("only %d flags", len(first))
	}
}

// TestDataCommandsHaveJSON checks that every command with a result has -o.
func TestDataCommandsHaveJSON(t *testing.T) {
	t.Parallel()
	none := []string{"zkgo", "zkgo server", "zkgo container", "zkgo testserver", "zkgo config", "zkgo inspect", "zkgo context", "zkgo context use", "zkgo man", "zkgo mirror"}
	visit(newCommand(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if strings.HasPrefix(path, "zkgo completion") || strings.HasPrefix(path, "zkgo help") || slices.Contains(none, path) {
			return
		}
		flag := cmd.Flag("output")
		if flag == nil || flag.Shorthand != "o" || !strings.Contains(flag.Usage, "json") {
			t.Errorf("%s has no -o json", path)
		}
	})
}

// TestEveryCommandRefusesUnknownFlags checks that all commands fail with exit code 2 for an
// unknown flag, print nothing and refer to their help.
func TestEveryCommandRefusesUnknownFlags(t *testing.T) {
	t.Parallel()
	visit(newCommand(), func(cmd *cobra.Command) {
		words := strings.Fields(cmd.CommandPath())[1:]
		out, _, err := zkgo(t, append(words, "--no-such-flag")...)
		if code, _ := codeOf(err); err == nil || code != 2 || out != "" || !strings.Contains(err.Error(), "--help") {
			t.Errorf("zkgo %s --no-such-flag: %d, %q, %v", strings.Join(words, " "), code, out, err)
		}
		if cmd.HasAvailableSubCommands() {
			out, _, err := zkgo(t, append(words, "nonsense")...)
			if code, _ := codeOf(err); err == nil || code != 2 || out != "" {
				t.Errorf("zkgo %s nonsense: %d, %q, %v", strings.Join(words, " "), code, out, err)
			}
		}
		out, _, err = zkgo(t, append(words, "--help")...)
		if err != nil || !strings.Contains(out, "Usage:") {
			t.Errorf("zkgo %s --help: %q, %v", strings.Join(words, " "), out, err)
		}
	})
}

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// TestUsageErrors checks that an invalid command line fails with exit code 2, prints
// no data, and says what helps.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"serve":                                 "Did you mean this? server",
		"connect":                               "zkgo cli connect",
		"tpo":                                   "Did you mean this? top",
		"addWatch -m X /":                       "zkgo cli addWatch",
		"gte -x a /x":                           "Did you mean this? get",
		"config chek -o json x":                 "Did you mean this? check",
		"inspect -o json lst x":                 "Did you mean this? list",
		"backup -x":                             "unknown shorthand flag",
		"backup a.zkb -x":                       "unknown shorthand flag",
		"nothing":                               "zkgo --help",
		"config chek zoo.cfg":                   "Did you mean this? check",
		"inspect nosuch x":                      "snapshot",
		"inspect snapshot":                      "zkgo inspect snapshot --help",
		"help nosuch":                           `unknown command "nosuch"`,
		"completion basg":                       "bash",
		"version now":                           "now",
		"server a b":                            "zkgo server --help",
		"server a --config b":                   "two configuration files",
		"import a --config b":                   "two configuration files",
		"export a --config b --to-zookeeper x":  "two configuration files",
		"recover a --config b":                  "two configuration files",
		"restore x a --config b":                "two configuration files",
		"health a.cfg --server b:1":             "--server",
		"server --port 2181":                    "Did you mean --client-port?",
		"server --clinet-port 2181":             "Did you mean --client-port?",
		"server --client-port 99999":            "65535",
		"server --client-port abc":              "want a port",
		"server --data-dir " + file:             "is a file, want a directory",
		"server --set tickTime":                 "key=value",
		"server --log-level loud":               "loud",
		"testserver --port 99999":               "65535",
		"testserver --servers many":             "want a number",
		"health --timeout 5":                    "30s",
		"health --timeout 0":                    "want a duration above 0",
		"health --timeout=-1s":                  "want a duration above 0",
		"health --wait=-1s":                     "--wait -1s",
		"health --word mntrs":                   "four letters",
		"health --word mntr --live":             "word",
		"bench sett":                            "Did you mean set?",
		"bench get -o xml":                      "--output",
		"bench get --auth digest":               "--auth: want two words separated by a colon",
		"bench get --auth @" + file + ".nosuch": "no such file",
		"backup x":                              "from",
		"backup verfy x.zkb":                    "Did you mean zkgo backup verify?",
		"backup extract x.zkb":                  `zkgo backup extract expects FILE DIR, got ["x.zkb"]`,
		"backup verify":                         "zkgo backup verify expects FILE, got none",
		"container x y":                         `zkgo container expects [zoo.cfg], got ["x" "y"]`,
		"container -":                           "want a file or directory name",
		"health --server a --set b=c":           "server",
		"health zoo.cfg --tls":                  "zoo.cfg and --tls both name the server",
		"backup x --from y --tls-key z":         "--tls-cert",
		"recover --yes --dry-run":               "dry-run",
		"cli -nonsense ls /":                    "zkgo cli --help",
		"cli --sever a ls /":                    "Did you mean --server?",
		"cli --output xml ls /":                 "--output",
		"cli --output jsn ls /":                 "Did you mean json?",
		"get -s http://localhost:1 /x":          "not a URL",
		"ls -s localhost:1:x":                   "localhost:1:x",
		"export --compression gzp":              "Did you mean gz?",
		"config check -o jsno x":                "Did you mean json?",
		"server --log-level wran":               "Did you mean warn?",
		"server --data-log-dir " + file:         "is a file, want a directory",
		"get":                                   "zkgo get expects path..., got none",
		"get -s /x":                             "-s means --server",
		"get --sever a /x":                      "Did you mean --server?",
		"get /x --timeout 5":                    "want a duration above 0, e.g. 30s",
		"ls --recursiv /":                       "Did you mean --recursive?",
		"tree -depht 2 /":                       "unknown shorthand flag",
		"cp /a":                                 `zkgo cp expects from to, got ["/a"]`,
		"set /a b c":                            "zkgo set expects path data",
		"context lst":                           "Did you mean this? ls",
		"context use":                           "zkgo context use expects NAME",
		"bench get --session-timeout 0":         "want a duration above 0",
		"cli -server localhost:1 lss /":         "Did you mean ls?",
		"cli -server localhost:1 ls --hepl":     "Unrecognized option",
		"cli -server localhost:1 rm":            "rm ",
		"cli -server localhost:1 cp /a /b /c":   `"/c"`,
		"cli -server localhost:1 set /x a b":    `"b"`,
		"cli -server localhost:1 delete -v x /": "number",
	} {
		if strings.Contains(args, "delete -v") {
			args = strings.Replace(args, "localhost:1", zktest.Run(t).Addrs()[0]+" -q", 1)
		}
		out, said, err := zkgo(t, strings.Fields(args)...)
		code, tell := codeOf(err)
		if tell {
			said += err.Error()
		}
		if err == nil || code != 2 || !strings.Contains(said, want) {
			t.Errorf("zkgo %s: %d, %q, want %q in it", args, code, said, want)
		}
		if strings.Contains(said, "onnect") && strings.HasPrefix(args, "cli") {
			t.Errorf("zkgo %s connects before it looks at the command: %q", args, said)
		}
		if out != "" && !strings.HasPrefix(out, "Connecting to") {
			t.Errorf("zkgo %s: stdout %q", args, out)
		}
	}
}

// TestEveryCommandRefusesSurplus checks that no command ignores arguments, and that
// no group treats an unknown word as a request for help.
func TestEveryCommandRefusesSurplus(t *testing.T) {
	t.Parallel()
	visit(newCommand(), func(cmd *cobra.Command) {
		if cmd.Name() == "cli" || cmd.Name() == "bench" || cmd.Name() == "help" || strings.Contains(cmd.Use, "...") {
			return // they have special rules, see TestUsageErrors
		}
		args := append(strings.Fields(cmd.CommandPath())[1:], "surplus", "surplus", "surplus", "surplus")
		_, _, err := zkgo(t, args...)
		if code, _ := codeOf(err); err == nil || code != 2 {
			t.Errorf("zkgo %q: %v", args, err)
		}
	})
}

func visit(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		visit(sub, f)
	}
}

// TestFailuresAreNotUsageErrors checks that a valid command that fails has exit code
// 1.
func TestFailuresAreNotUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"config check /no/such/zoo.cfg", "inspect verify /no/such/dir", "health --server localhost:1 --timeout 2s", "bench get --server localhost:1"} {
		_, _, err := zkgo(t, strings.Fields(args)...)
		if code, _ := codeOf(err); err == nil || code != 1 {
			t.Errorf("zkgo %s: %v", args, err)
		}
	}
}

// TestBenchLeavesNothing checks that bench removes its znodes and announces its
// writes.
func TestBenchLeavesNothing(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/mine": ""})
	addr := zs.Addrs()[0]
	for _, root := range []string{"/zkgo-bench", "/mine/a/b"} {
		_, said, err := zkgo(t, "bench", "get", "create", "-s", addr, "--duration", "50ms", "--warmup", "1ms", "--nodes", "10", "--root", root)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, "writes below "+root) || strings.Contains(said, "ops/s") {
			t.Errorf("stderr, which is no terminal: %q", said)
		}
		if out, _, err := zkgo(t, "cli", "-q", "-server", addr, "ls", "-R", "/mine"); err != nil || out != "/mine\n" {
			t.Errorf("%q, %v", out, err)
		}
		if out, _, err := zkgo(t, "cli", "-q", "-server", addr, "ls", "/"); err != nil || out != "[mine, zookeeper]\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// TestStartErrorsNameARemedy covers a port, a directory and a lock that are unavailable.
func TestStartErrorsNameARemedy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	held := t.TempDir()
	s, err := server.Start(t.Context(), server.Config{DataDir: held})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it holds the lock, and nothing else
	quiet := " --set admin.enableServer=false --set clientPortAddress=127.0.0.1"
	fresh := filepath.Join(t.TempDir(), "new")
	for args, wants := range map[string][]string{
		"server --client-port " + port + " --data-dir " + fresh + quiet: {"in use", port, "--client-port"},
		"server --client-port 0 --data-dir " + held + quiet:             {held, "in use by another server", fmt.Sprintf("(process %d)", os.Getpid()), "--data-dir"},
		"testserver --stay --port " + port:                              {"in use", "--port"},
		"testserver --stay --servers 2 --port " + port:                  {"in use", "--port"},
	} {
		_, log, err := zkgo(t, strings.Fields(args)...)
		if err == nil {
			t.Errorf("zkgo %s: it runs", args)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("zkgo %s: %v, want %q in it", args, err, want)
			}
		}
		if strings.Contains(log, "serving=true") {
			t.Errorf("zkgo %s: it says that it serves:\n%s", args, log)
		}
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a data directory is left behind: %v", err)
	}
}

func TestAdminAuth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("digest:a:b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"digest:a:b": "digest a:b", "digest a:b": "digest a:b", "x509": "x509", "": "", "@" + file: "digest a:b",
	} {
		if got, err := adminAuth([]string{text}); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestBenchAuth reads credentials from a file and from the flag.
func TestBenchAuth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("digest:a:b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := benchFlags{output: "text", runs: 1, connect: connectFlags{auth: []string{"@" + file, "digest:c:d"}, settings: settings{getenv: os.Getenv}}}
	f.Writes = 0.1
	if err := f.complete(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range f.Auth {
		got = append(got, a.Scheme+" "+string(a.Auth))
	}
	if strings.Join(got, ", ") != "digest a:b, digest c:d" {
		t.Errorf("%q", got)
	}
}

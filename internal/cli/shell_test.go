package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// TestCommands is one session. We compare it with zkCli.sh in tests/compat/operator/cli.
func TestCommands(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	b.want("printwatches off", "", "", 0)
	b.want("create /a one", "", "Created /a\n", 0)
	b.want("create /a two", "", "Node already exists: /a\n", 1)
	b.want("create -s /a/n- x", "", "Created /a/n-0000000000\n", 0)
	b.want("create /a/none", "", "Created /a/none\n", 0)
	b.want("get /a", "one\n", "", 0)
	b.want("get /a/none", "null\n", "", 0)
	b.want("get -b /a", "b25l\n", "", 0)
	b.want("get /x", "", "Node does not exist: /x\n", 1)
	b.want("get /a watch", "one\n", "'get path [watch]' has been deprecated. Please use 'get [-s] [-w] path' instead.\n", 0)
	b.want("ls /a", "[n-0000000000, none]\n", "", 0)
	b.want("ls -R /a", "/a\n/a/n-0000000000\n/a/none\n", "", 0)
	b.want("get /a true", "one\n", "'get path [watch]' has been deprecated. Please use 'get [-s] [-w] path' instead.\n", 0)
	b.want("ls", "", "ls [-s] [-w] [-R] path\n", 2)
	b.want("set -v 7 /a x", "", "version No is not valid : /a\n", 1)
	b.want("set -b /a aGk=", "", "", 0)
	b.want("get /a", "hi\n", "", 0)
	b.want("getAllChildrenNumber /a", "2\n", "", 0)
	b.want("getAcl /a", "'world,'anyone\n: cdrwa\n", "", 0)
	b.want("setAcl /a world:anyone:cdrw,", "", "", 0)
	b.want("getAcl /a", "'world,'anyone\n: cdrw\n", "", 0)
	b.want("setAcl -R /a world:anyone:r", "", "Insufficient permission : /a\n", 1)
	b.want("create -e /e", "", "Created /e\n", 0)
	b.want("create /e/x", "", "Ephemerals cannot have children: /e/x\n", 1)
	b.want("getEphemerals", "[/e]\n", "", 0)
	b.want("sync /", "Sync is OK\n", "", 0)
	b.want("delete /a", "", "Node not empty: /a\n", 1)
	b.want("deleteall /a -b 1", "", "", 0)
	b.want("stat /a", "", "Node does not exist: /a\n", 1)
	b.want("create a", "", "Path must start with / character\n", 2)
	b.want("get a", "", "Path must start with / character\n", 2)
	b.want("nonsense", "", "Command not found: nonsense. See: help\n", 2)
	b.want("lss /", "", "Command not found: lss. Did you mean ls? See: help\n", 2)
	b.want("create /x/y/z", "", "Node does not exist: /x/y, the parent of /x/y/z: create -p creates the parents as well\n", 1)
	b.want("tree /x", "", "reading /x: Node does not exist: /x\n", 1)
	b.want("diff / /x", "", "diff: reading /x: Node does not exist: /x\n", 2)
	b.want("reconfig -remove 9", "", "KeeperErrorCode = Reconfig is disabled: the servers need reconfigEnabled=true in zoo.cfg\n", 1)
	b.want("create -p /x/y/z data", "", "Created /x/y/z\n", 0)
	b.want("get /x/y/z", "data\n", "", 0)
	b.want("rm -r /x", "3 znodes deleted\n", "", 0)
	b.want("close", "", "", 0)
	b.want("ls /", "", "Not connected\n", 1)
	b.want("connect", "", "", 0)
	b.want("ls /", "[zookeeper]\n", "", 0)
}

// TestHelp checks that every command has help, in three forms, and a line in the
// list.
func TestHelp(t *testing.T) {
	t.Parallel()
	var out, errs shared
	s := New(Config{Server: "nowhere", Out: &out, Err: &errs})
	defer s.Close() //nolint:errcheck // there is no session
	do := func(args ...string) string {
		code := s.Command(t.Context(), args)
		if text := errs.take(); code != 0 || text != "" {
			t.Errorf("%q: %d, %q", args, code, text)
		}
		return out.take()
	}
	list := do("help")
	for _, c := range Commands() {
		text := do("help", c.Name)
		if !strings.Contains(text, c.Name+" "+c.Usage) || !strings.Contains(text, c.Short) {
			t.Errorf("help %s: %q", c.Name, text)
		}
		for _, o := range c.Options {
			if !strings.Contains(text, o.Help) {
				t.Errorf("help %s does not explain -%s", c.Name, o.Name)
			}
		}
		if got := do(c.Name, "-h"); got != text {
			t.Errorf("%s -h: %q", c.Name, got)
		}
		if got := do(c.Name, "/x", "--help"); got != text {
			t.Errorf("%s --help: %q", c.Name, got)
		}
		if !strings.Contains(list, "  "+c.Name+" ") || !strings.Contains(list, c.Short) {
			t.Errorf("the list does not explain %s", c.Name)
		}
	}
}

// TestUnexpectedArguments checks that no command ignores an argument.
func TestUnexpectedArguments(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	for _, c := range Commands() {
		if c.Most == Any {
			continue
		}
		line := c.Name
		if c.Required != "" {
			line += " -n 5"
		}
		line += strings.Repeat(" /x", c.Most) + " /surplus"
		out, errs, code := b.do(line)
		if out != "" || code != 2 || !strings.HasPrefix(errs, c.Name+`: unexpected argument "/surplus"`) {
			t.Errorf("%s: %q, %q, %d", line, out, errs, code)
		}
	}
	b.do("create /v one")
	for line, argument := range map[string]string{"get /v uni": "uni", "ls / with": "with", "stat /v space": "space", "get /v watch /v": "watch", "delete /v 1 /v": "1"} {
		if out, errs, code := b.do(line); out != "" || code != 2 || !strings.Contains(errs, strconv.Quote(argument)) {
			t.Errorf("%s: %q, %q, %d", line, out, errs, code)
		}
	}
}

// TestSeveralPaths checks that commands for one path accept several, and that an
// error for one path doesn't stop the others.
func TestSeveralPaths(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/a": "", "/b": "12", "/c": ""})
	b := newTold(t, zs)
	b.want("find /a /b", "/a\n/b\n", "", 0)
	b.want("du /a /b", "       1 znode         0 B  /a\n       1 znode         2 B  /b\n", "", 0)
	b.want("tree /a /b", "/a\n\n1 znode, 0 B of data\n/b\n\n1 znode, 2 B of data\n", "", 0)
	if out, errs, code := b.do("rm /a /missing /c"); out != "1 znode deleted\n1 znode deleted\n" || code != 1 || strings.Count(errs, "\n") != 1 ||
		!strings.HasPrefix(errs, "rm /missing: ") {
		t.Errorf("%q, %q, %d", out, errs, code)
	}
	b.want("ls /", "[b, zookeeper]\n", "", 0)
	zs.Seed(map[string]string{"/a": "1", "/b/c": ""})
	missing := "Node does not exist: /x\n"
	b.want("ls /a /b", "/a:\n[]\n\n/b:\n[c]\n", "", 0)
	b.want("ls -R /a /b", "/a\n/b\n/b/c\n", "", 0)
	b.want("get /a /x /b", "/a:\n1\n\n/b:\n12\n", missing, 1)
	b.want("getAcl /a /x /b", "/a:\n'world,'anyone\n: cdrwa\n\n/b:\n'world,'anyone\n: cdrwa\n", missing, 1)
	b.want("getAllChildrenNumber /a /b", "/a:\n0\n\n/b:\n1\n", "", 0)
	if out, errs, code := b.do("stat /a /x /b"); strings.Count(out, "numChildren") != 2 || !strings.Contains(out, "\n\n/b:\n") || errs != missing || code != 1 {
		t.Errorf("%q, %q, %d", out, errs, code)
	}
	if out, errs, code := b.do("listquota /a /b"); out != "" || strings.Count(errs, "does not exist") != 2 || code != 1 {
		t.Errorf("%q, %q, %d", out, errs, code)
	}
	b.want("delete /x /a", "", missing, 1)
	zs.Seed(map[string]string{"/a/d": ""})
	b.want("deleteall /a /b", "", "", 0)
	b.want("ls /", "[zookeeper]\n", "", 0)
}

// TestLongNames checks that options of one letter have a second name, and that no name
// means two options.
func TestLongNames(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	b.want("create --parents /a/b 12", "", "Created /a/b\n", 0)
	b.want("get --base64 /a/b", "MTI=\n", "", 0)
	b.want("get --bse64 /a/b", "", "Unrecognized option: --bse64. Did you mean -base64? See: help get\n", 2)
	b.want("set --version=7 /a/b x", "", "version No is not valid : /a/b\n", 1)
	for _, c := range Commands() {
		names := map[string]bool{}
		for _, o := range c.Options {
			if c.Verb != "" && len(o.Name) == 1 && o.Long == "" && o.Name != "?" {
				t.Errorf("%s -%s has no long name", c.Name, o.Name)
			}
			for _, name := range []string{o.Name, o.Long} {
				if name != "" && names[name] {
					t.Errorf("%s: two options are -%s", c.Name, name)
				}
				names[name] = true
			}
		}
		if name, _, _ := strings.Cut(c.Verb, " "); c.Verb != "" && name != c.Name {
			t.Errorf("%s: the verb is %q", c.Name, c.Verb)
		}
	}
}

// TestNoticesAreNotData checks that without a prompt only data and events of znodes are
// on the standard output.
func TestNoticesAreNotData(t *testing.T) {
	t.Parallel()
	for _, prompt := range []bool{false, true} {
		b := newTold(t, zktest.Run(t), func(c *Config) { c.Quiet, c.Prompt = false, prompt })
		code, _ := b.shell.Line(t.Context(), "ls -w /")
		out, said := b.out.take(), b.err.take()
		if strings.Contains(out, "SyncConnected") != prompt || strings.Contains(said, "SyncConnected") == prompt || !strings.HasSuffix(out, "[zookeeper]\n") || code != 0 {
			t.Errorf("%v: %q, %q, %d", prompt, out, said, code)
		}
		out, said, _ = b.do("create /a")
		more, too, _ := b.do("sync /")
		out, said = out+more, strings.TrimPrefix(said, "Created /a\n")+too
		if !strings.Contains(out, "NodeChildrenChanged") || strings.Contains(said, "Event") {
			t.Errorf("%v: %q, %q", prompt, out, said)
		}
	}
}

// TestValues checks that data comes unchanged from the input, from files and from
// arguments.
func TestValues(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	bytes := "\x00\xff line\n"
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"set /v -", bytes},
		{"set /v @" + file, bytes},
		{"set /v @@x", "@x"},
		{"set /v -- -", "-"},
		{"set /v -- @x", "@x"},
		{"set /v text", "text"},
	} {
		b := newTold(t, zs, func(config *Config) { config.In = strings.NewReader(bytes) })
		b.shell.Command(t.Context(), []string{"create", "/v"})
		if code := b.shell.Command(t.Context(), strings.Fields(c.args)); code != 0 {
			t.Errorf("%s: %d, %s", c.args, code, b.err.take())
		}
		b.out.take()
		b.shell.Command(t.Context(), []string{"get", "/v"})
		if got := b.out.take(); got != c.want+"\n" {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
		created := strings.Fields(strings.Replace(c.args, "set /v", "create /c", 1))
		b.shell.cfg.In = strings.NewReader(bytes)
		b.shell.Command(t.Context(), created)
		b.out.take()
		b.shell.Command(t.Context(), []string{"get", "/c"})
		if got := b.out.take(); got != c.want+"\n" {
			t.Errorf("%q: %q, want %q", created, got, c.want)
		}
		b.shell.Command(t.Context(), []string{"delete", "/c"})
	}
	b := newTold(t, zs)
	if code := b.shell.Command(t.Context(), []string{"set", "/v", "@/no/such/file"}); code != 2 || !strings.Contains(b.err.take(), "/no/such/file") {
		t.Errorf("a file that does not exist: %d", code)
	}
	if code := b.shell.Script(t.Context(), strings.NewReader("set /v -\nls /"), true); code != 2 || !strings.Contains(b.err.take(), "use @FILE") {
		t.Errorf("- in a script: %d", code)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := b.shell.Command(t.Context(), []string{"set", "/v", "@" + large}); code != 1 || !strings.Contains(b.err.take(), "jute.maxbuffer") {
		t.Errorf("2 MiB: %d", code)
	}
}

// TestExportReplacesNoFile checks that export replaces a file only if told to.
func TestExportReplacesNoFile(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "x.yaml")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do("create /app")
	if _, errs, code := b.do("export -f " + file + " /app"); code != 1 || !strings.Contains(errs, "-force") {
		t.Errorf("%q, %d", errs, code)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
	if err := writeFile(file, false, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err == nil {
		t.Error("a file that was made meanwhile is replaced")
	}
	if _, errs, code := b.do("export -force -f " + file + " /app"); code != 0 {
		t.Errorf("%q, %d", errs, code)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "root: /app") {
		t.Errorf("%q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestExportReplacesLinkTarget checks that a forced export keeps a symbolic link and
// replaces its target, and that we refuse a dangling link.
func TestExportReplacesLinkTarget(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	dir, other := t.TempDir(), t.TempDir()
	file, link, broken := filepath.Join(other, "x.yaml"), filepath.Join(dir, "link.yaml"), filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{link: file, broken: filepath.Join(dir, "missing")} {
		if err := os.Symlink(target, name); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	b.do("create /app")
	if _, errs, code := b.do("export -force -f " + link + " /app"); code != 0 {
		t.Errorf("%q, %d", errs, code)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "root: /app") {
		t.Errorf("%q, %v", text, err)
	}
	if _, errs, code := b.do("export -force -f " + broken + " /app"); code != 1 {
		t.Errorf("a broken link: %q, %d", errs, code)
	}
	if info, err := os.Lstat(broken); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the broken link: %v, %v", info, err)
	}
	if _, errs, code := b.do("export -force -format json -f " + dir + " /app"); code != 1 || !strings.Contains(errs, dir+" is a directory") {
		t.Errorf("a directory: %q, %d", errs, code)
	}
}

// TestExportToOutput checks that the file "-" is the output.
func TestExportToOutput(t *testing.T) {
	b := newTold(t, zktest.Run(t))
	t.Chdir(t.TempDir())
	b.do("create /app")
	want, _, _ := b.do("export /app")
	if !strings.Contains(want, `"root"`) {
		t.Fatalf("without -f: %q", want)
	}
	for _, line := range []string{"export -f - /app", "export -f - -force /app", "export -f - -format json /app"} {
		if out, errs, code := b.do(line); out != want || code != 0 {
			t.Errorf("%s: %q, %q, %d", line, out, errs, code)
		}
	}
	if out, errs, code := b.do("export -f - -format yaml /app"); !strings.Contains(out, "root: /app") || code != 0 {
		t.Errorf("YAML: %q, %q, %d", out, errs, code)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("created: %v, %v", left, err)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	limits := "absolute path is /zookeeper/quota/q/zookeeper_limits\n"
	b.do("create /q 12345")
	b.do("create /q/a")
	b.want("setquota -n 1 /q", "[Warning]: the count quota you create is less than the existing count:2\n", "", 0)
	b.want("setquota -B 100 /q", "[Warning]: the count quota you create is less than the existing count:2\n", "", 0)
	b.want("listquota /q", "Output quota for /q count=1,bytes=-1=;byteHardLimit=100;countHardLimit=-1\n"+
		"Output stat for /q count=2,bytes=5\n", limits, 0)
	b.want("setquota -n 5 /q/a", "", "/q/a has a parent /q which has a quota\n", 1)
	b.want("delquota -n /q", "", "", 0)
	b.want("listquota /q", "Output quota for /q count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=-1\n"+
		"Output stat for /q count=2,bytes=5\n", limits, 0)
	b.want("delquota /q", "", "", 0)
	b.want("listquota /q", "", limits+"quota for /q does not exist.\n", 1)
	b.want("setquota -n 5 /q/a", "", "", 0)
	b.want("setquota -n 5 /q", "", "/q has a child /q/a which has a quota\n", 1)
	b.want("delquota /q/a", "", "", 0)
	b.want("ls /zookeeper/quota", "[]\n", "", 0)
}

// TestQuotaInChroot checks that quotas are stored where the servers look for them.
func TestQuotaInChroot(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/app": "", "/app/q": "1234"})
	b := newTold(t, zs, func(c *Config) { c.Server = "server/app" })
	b.want("setquota -n 5 /q", "", "", 0)
	b.want("listquota /q", "Output quota for /q count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=-1\nOutput stat for /q count=1,bytes=4\n",
		"absolute path is /zookeeper/quota/app/q/zookeeper_limits\n", 0)
	b.want("ls /", "[q]\n", "", 0)
}

// TestEvents checks that each event is printed once, regardless of the number of
// watches for it, with the path relative to the chroot.
func TestEvents(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/app": "", "/app/w": ""})
	b := newTold(t, zs, func(c *Config) { c.Server = "server/app" })
	for _, line := range []string{"get -w /w", "stat -w /w", "addWatch -m PERSISTENT /w", "addWatch /"} {
		if _, text, code := b.do(line); code != 0 {
			t.Fatalf("%s: %s", line, text)
		}
	}
	out, _, _ := b.do("set /w x")
	if n := strings.Count(out, "type:NodeDataChanged path:/w zxid: "); n != 1 || strings.Count(out, "WATCHER::") != 1 {
		t.Errorf("%d events:\n%s", n, out)
	}
	b.want("removewatches /w -p", "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:PersistentWatchRemoved path:/w zxid: -1\n", "", 0)
	b.want("removewatches /w", "", "KeeperErrorCode = No such watcher for /w\n", 1)
	b.want("printwatches off", "", "", 0)
	b.want("set /w y", "", "", 0)
	b.want("printwatches", "printwatches is off\n", "", 0)
}

// TestPrintWatchesArgument checks that a mistyped argument doesn't switch events off.
func TestPrintWatchesArgument(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	b.want("printwatches maybe", "", "printwatches maybe: want on or off\n", 2)
	b.want("printwatches ON", "", "printwatches ON: want on or off\n", 2)
	b.want("printwatches", "printwatches is on\n", "", 0)
}

// TestMistypedACL checks that a command with an invalid ACL fails and changes nothing.
func TestMistypedACL(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	b.do("create /a")
	b.do("create /a/b")
	b.do("create /c x world:anyone:r")
	for acl, want := range map[string]string{
		"world:anyone:x":       "Unknown perm type: x\n",
		"world:anyone:xr":      "Unknown perm type: x\n",
		"world:anyone:xy":      "Unknown perm type: x\nUnknown perm type: y\n",
		"world:anyone:r,bad":   "bad does not have the form scheme:id:perm\n",
		"bad,world:anyone:rwx": "bad does not have the form scheme:id:perm\nUnknown perm type: x\n",
		"world:anyone:r,,":     "",
		",world:anyone:r":      " does not have the form scheme:id:perm\n",
	} {
		if want == "" {
			b.want("setAcl /c "+acl, "", "Insufficient permission : /c\n", 1) // the ACL is valid
			continue
		}
		b.want("setAcl /a "+acl, "", want, 2)
		b.want("setAcl -R /a "+acl, "", want, 2)
		b.want("create /new x "+acl, "", want, 2)
	}
	const bad = "bad does not have the form scheme:id:perm\n"
	b.want("setAcl /a bad", "", bad+"Acl is not valid : null\n", 2)
	b.want("create /new x bad", "", bad+"KeeperErrorCode = InvalidACL\nAcl is not valid : null\n", 2)
	b.want("getAcl /a", "'world,'anyone\n: cdrwa\n", "", 0)
	b.want("getAcl /a/b", "'world,'anyone\n: cdrwa\n", "", 0)
	b.want("ls /", "[a, c, zookeeper]\n", "", 0)
}

// fullDisk is a writer that fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLostOutput checks that a command fails if its output can't be written.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t), func(c *Config) { c.Out = fullDisk{} })
	b.want("create /a", "", "Created /a\n", 0)
	for _, command := range []string{"get /a", "ls /", "stat /a", "getAcl /", "tree /", "find /", "du /", "whoami", "version"} {
		b.want(command, "", "no space left\n", 1)
	}
}

// TestNoExtendedTypes checks that the error of a server without znodes that expire names its
// setting.
func TestNoExtendedTypes(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t, zktest.WithConfig(func(c *server.Config) { c.Znodes.ExtendedTypes = false })))
	b.want("create -t 5 /t", "", "KeeperErrorCode = Unimplemented for /t: a time to live needs extendedTypesEnabled=true in the servers' zoo.cfg\n", 1)
}

// TestMissingChroot checks that the error for the root names a chroot that doesn't
// exist.
func TestMissingChroot(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t), func(c *Config) { c.Server = "server/nochroot" })
	want := "Node does not exist: / (the chroot /nochroot may be missing)\n"
	b.want("ls /", "", want, 1)
	b.want("tree /", "", "reading /: Node does not exist: / (the chroot /nochroot may be missing)\n", 1)
	b.want("get /x", "", "Node does not exist: /x\n", 1)
}

// TestJSON checks that commands that print data print exactly one document.
func TestJSON(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/a": "text", "/a/b": "\xff\x00"})
	b := newTold(t, zs, func(c *Config) { c.JSON = true })
	b.want("get /a", `{"path":"/a","data":"text"}`+"\n", "", 0)
	b.want("get /a/b", `{"path":"/a/b","data":null,"base64":"/wA="}`+"\n", "", 0)
	b.want("ls /a", `{"path":"/a","children":["b"]}`+"\n", "", 0)
	b.want("ls /a/b", `{"path":"/a/b","children":[]}`+"\n", "", 0)
	b.want("getAcl /a", `{"path":"/a","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}`+"\n", "", 0)
	b.want("create -s /n", `{"path":"/n0000000001"}`+"\n", "", 0)
	b.want("printwatches", `{"printwatches":"on"}`+"\n", "", 0)
	b.want("delquota /a", "", "Quota does not exist for /a\n", 0)
	b.want("setquota -n 1 /a", "", "[Warning]: the count quota you create is less than the existing count:2\n", 0)
	b.want("listquota /a", `{"path":"/a","quota":{"byteHardLimit":-1,"bytes":-1,"count":1,"countHardLimit":-1},"stat":{"bytes":6,"count":2}}`+"\n",
		"absolute path is /zookeeper/quota/a/zookeeper_limits\n", 0)
	for _, line := range []string{
		"stat /a", "get -s /a", "ls -s /a", "getAcl -s /a", "set -s /a x", "config", "config -s", "whoami", "version", "sync /",
		"getAllChildrenNumber /", "getEphemerals", "history",
	} {
		out, text, code := b.do(line)
		var document map[string]any
		if err := json.Unmarshal([]byte(out), &document); err != nil || code != 0 || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %v\n%s%s", line, err, out, text)
		}
	}
	b.do("get -w /a")
	out, _, _ := b.do("set /a z")
	var event struct{ Event event }
	if err := json.Unmarshal([]byte(out), &event); err != nil || event.Event.Path != "/a" || event.Event.Type != "NodeDataChanged" {
		t.Errorf("an event: %v\n%s", err, out)
	}
}

// TestScript checks that the exit code comes from the last failure, and that the
// lines after it run unless stop is set.
func TestScript(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	b := newTold(t, zs)
	if code := b.shell.Script(t.Context(), strings.NewReader("create /a\nget /x\n\ncreate /b\nquit\ncreate /c\n"), false); code != 1 {
		t.Errorf("exit code %d", code)
	}
	b = newTold(t, zs)
	b.want("ls /", "[a, b, zookeeper]\n", "", 0)
	if code := b.shell.Script(t.Context(), strings.NewReader("nonsense\ncreate /d\n"), true); code != 2 {
		t.Errorf("exit code %d", code)
	}
	b.want("ls /", "[a, b, zookeeper]\n", "", 0)
}

// TestScriptWithByteOrderMark checks that a byte order mark is no part of the first
// command.
func TestScriptWithByteOrderMark(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	if code := b.shell.Script(t.Context(), strings.NewReader("\ufeffcreate /a\ncreate /b\n"), true); code != 0 {
		t.Errorf("exit code %d, %q", code, b.err.take())
	}
	b.want("ls /", "[a, b, zookeeper]\n", "", 0)
}

func TestHistoryCommands(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	b.want("redo 0", "", "Command index out of range\n", 1)
	b.want("create /a", "", "Created /a\n", 0)
	b.want("redo 1", "", "Node already exists: /a\n", 1)
	b.want("redo 0", "", "No redoing redos\n", 1)
	b.want("redo x", "", "Command index out of range\n", 1)
	b.want("history", "0 - redo 0\n1 - create /a\n2 - create /a\n3 - redo 0\n4 - redo x\n5 - history\n", "", 0)
}

// TestRefusedIdentity checks that a session doesn't continue without its identity
// after a failed authentication.
func TestRefusedIdentity(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	b.want("addauth nothing x", "", "KeeperErrorCode = AuthFailed\n", 1)
	b.want("ls /", "", "Not connected\n", 1)
}

// TestSessionEnds checks that the shell never continues silently in another session.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	b := newTold(t, zs, func(c *Config) { c.Quiet, c.Prompt = false, true })
	b.do("create -e /e")
	zs.ExpireSession(b.shell.zk.Session().ID)
	out, text, code := "", "", 0
	for began := time.Now(); !(strings.Contains(text, "Not connected") && strings.Contains(out, "Expired")) && time.Since(began) < time.Minute; {
		var more string
		more, text, code = b.do("stat /e")
		out += more
	}
	if code != 1 || !strings.Contains(out, "state:Disconnected") || !strings.Contains(out, "state:Expired") {
		t.Errorf("%d %s\n%s", code, text, out)
	}
	b.do("connect")
	if _, text, code := b.do("stat /e"); code != 1 || text != "Node does not exist: /e\n" {
		t.Errorf("%d %s", code, text)
	}
}

// TestInterrupt checks that a script and a command end and report the interrupt.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	b := newTold(t, zs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := b.shell.Command(ctx, []string{"get", "/"}); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if text := b.err.take(); text != "Interrupted\n" {
		t.Errorf("said %q", text)
	}
	stdin, hangs := io.Pipe()
	defer hangs.Close()
	if code := b.shell.Script(ctx, stdin, false); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// TestNoServer checks that a command gives up and reports the reason.
func TestNoServer(t *testing.T) {
	t.Parallel()
	var out, text shared
	s := New(Config{Server: "127.0.0.1:1", Out: &out, Err: &text, Patience: 1, Quiet: true})
	defer func() { _ = s.Close() }()
	if err := s.Connect("127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	code := s.Command(t.Context(), []string{"ls", "/"})
	if said := text.take(); code != 1 || !strings.Contains(said, "KeeperErrorCode = ConnectionLoss for /: ") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// environment returns the variables of a recorded case.
func environment(t *testing.T, dir string) (environ []string) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(dir, "env")))(t)
	for line := range strings.Lines(string(text)) {
		environ = append(environ, strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(strings.TrimSuffix(line, "\n")))
	}
	return environ
}

// TestAsTheEntrypoint compares with the output of the official image's entrypoint.
func TestAsTheEntrypoint(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/entrypoint/*")
	if err != nil || len(cases) < 6 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, dir := range cases {
		p := FromEnvironment(environment(t, dir))
		for name, got := range map[string]string{"zoo.cfg": p.Config, "myid": p.MyID + "\n"} {
			want := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
			if got != string(want) {
				t.Errorf("%s: %s is\n%s, the entrypoint wrote\n%s", dir, name, got, want)
			}
		}
	}
}

func in(root string, more ...string) []string {
	return append([]string{"ZOO_CONF_DIR=" + root + "/conf", "ZOO_DATA_DIR=" + root + "/data", "ZOO_DATA_LOG_DIR=" + root + "/log", "ZOO_MY_ID=3"}, more...)
}

// TestCheck: a word that isn't a member should cause an error that names it, unless the
// variable has no effect.
func TestCheck(t *testing.T) {
	t.Parallel()
	for servers, wrong := range map[string]string{
		"": "", "server.1=a:1:2;3\tserver.2=b:1:2;3\ngroup.1=1:2 weight.1=1": "", "zk1:2888:3888;2181 server.2=b:1:2": "zk1:2888:3888;2181",
		"server.1=a:1:2;3 , server.2=b:1:2;3": ",", "server.1 = a:1:2;3": "server.1", "sever.1=a:1:2": "sever.1=a:1:2", "server.x=a:1:2": "server.x=a:1:2",
	} {
		root := t.TempDir()
		p := FromEnvironment(in(root, "ZOO_SERVERS="+servers))
		if err := p.Check(); (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), "ZOO_SERVERS: \""+wrong+"\" is not a server: want server.N=") {
			t.Errorf("%q: %v", servers, err)
		}
		write(t, p.ConfigPath, "# mine\n")
		if err := p.Check(); err != nil {
			t.Errorf("%q beside a file: %v", servers, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	p := FromEnvironment(in(t.TempDir(), "ZOO_TICKTIME=5", "ZOO_LOG_DIR=/logs", "ZOO_DATADIR_AUTOCREATE_DISABLE=", "ZOOCFGDIR=/conf", "ZOO_A=", "PATH=/bin"))
	if got := strings.Join(p.Unknown, " "); got != "ZOO_A ZOO_TICKTIME" {
		t.Errorf("unknown: %s", got)
	}
}

// TestWith: we should use a file that the caller names, which must exist, and write only
// myid.
func TestWith(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	p := FromEnvironment(in(root)).With(root + "/other/zoo.cfg")
	if _, err := p.Read(p.ConfigPath); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	write(t, p.ConfigPath, "# mine\n")
	if text, err := p.Read(p.ConfigPath); err != nil || string(text) != "# mine\n" {
		t.Errorf("%q, %v", text, err)
	}
	must.Get(p.Write())(t)
	if _, err := os.Stat(root + "/conf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the variables' file: %v", err)
	}
	if id, err := os.ReadFile(p.MyIDPath); err != nil || string(id) != "3\n" {
		t.Errorf("%q, %v", id, err)
	}
	if same := FromEnvironment(in(root)).With(root + "/conf/./zoo.cfg"); same.given {
		t.Error("the file of the variables, by its name, is another one")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestWrite(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	p := FromEnvironment(in(root))
	notes, err := p.Write()
	if err != nil || len(notes) != 0 {
		t.Fatal(notes, err)
	}
	for path, want := range map[string]string{p.ConfigPath: p.Config, p.MyIDPath: "3\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if info, err := os.Stat(root + "/log"); err != nil || !info.IsDir() {
		t.Error(err)
	}
}

// TestWriteKeepsFiles checks that existing files are kept, and that the notes say so.
func TestWriteKeepsFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	p := FromEnvironment(in(root))
	for path, text := range map[string]string{p.ConfigPath: "# mine\n", p.MyIDPath: "9\n"} {
		write(t, path, text)
	}
	notes := must.Get(p.Write())(t)
	if all := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(all, "zoo.cfg already exists") || !strings.Contains(all, "with the id 9: ZOO_MY_ID would be 3") {
		t.Errorf("notes %q", notes)
	}
	for path, want := range map[string]string{p.ConfigPath: "# mine\n", p.MyIDPath: "9\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestWriteFails(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	must.Do(t, os.WriteFile(root+"/data", nil, 0o600))
	if _, err := FromEnvironment(in(root)).Write(); err == nil || !strings.Contains(err.Error(), root+"/data") {
		t.Errorf("a file in the place of the data directory: %v", err)
	}
	p := FromEnvironment(in(t.TempDir()))
	p.ConfigPath = filepath.Join(filepath.Dir(p.ConfigPath), strings.Repeat("x", 300)) // as in a container with a read-only root
	if _, err := p.Write(); err == nil || !strings.Contains(err.Error(), "mount a volume at "+filepath.Dir(p.ConfigPath)) {
		t.Errorf("a directory that can't be written: %v", err)
	}
}

func TestIDOfHostname(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"zk-0": "1", "my-zk-12": "13", "zk": "", "zk-": "", "zk-x": "", "zk-256": "", "zk--1": "2"} {
		got, err := IDOfHostname(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

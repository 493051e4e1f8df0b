package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// environment returns the variables of a recorded case.
func environment(t *testing.T, dir string) Lookup {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(value)
	}
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
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
			want, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s: %s is\n%s, the entrypoint wrote\n%s", dir, name, got, want)
			}
		}
	}
}

func in(root string) Lookup {
	values := map[string]string{"ZOO_CONF_DIR": root + "/conf", "ZOO_DATA_DIR": root + "/data", "ZOO_DATA_LOG_DIR": root + "/log", "ZOO_MY_ID": "3"}
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
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
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notes, err := p.Write()
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(all, "zoo.cfg is there already") || !strings.Contains(all, "with the id 9: ZOO_MY_ID would be 3") {
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
	if err := os.WriteFile(root+"/data", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FromEnvironment(in(root)).Write(); err == nil || !strings.Contains(err.Error(), root+"/data") {
		t.Errorf("a file in the place of the data directory: %v", err)
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

package contexts

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var (
	keys    = []string{"server", "auth", "tls-ca", "timeout"}
	secrets = []string{"auth"}
)

const example = `# mine
current-context: dev
contexts:
  dev: # on this machine
    server: localhost:2181
  prod:
    server: zk1:2281,zk2:2281
    tls-ca: ca.pem
    auth: ["@a", "@b"]
`

// file writes a configuration file.
func file(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := file(t, example, 0o644)
	f, err := Load(path, keys, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if f.Current != "dev" || !slices.Equal(f.Names(), []string{"dev", "prod"}) {
		t.Errorf("%q, %q", f.Current, f.Names())
	}
	c, err := f.Context("prod")
	if err != nil || !slices.Equal(c["auth"], []string{"@a", "@b"}) || !slices.Equal(c["server"], []string{"zk1:2281,zk2:2281"}) {
		t.Errorf("%q, %v", c, err)
	}
	if _, err := f.Context("prd"); err == nil || !strings.Contains(err.Error(), "Did you mean prod?") {
		t.Error(err)
	}
	if got := f.Beside("ca.pem"); got != filepath.Join(filepath.Dir(path), "ca.pem") {
		t.Error(got)
	}
}

// TestNoFile checks that without a file there are no contexts, which is no error.
func TestNoFile(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", filepath.Join(t.TempDir(), "none"), file(t, " \n", 0o600)} {
		f, err := Load(path, keys, secrets)
		if err != nil || f.Current != "" || len(f.Names()) > 0 {
			t.Errorf("%q: %+v, %v", path, f, err)
			continue
		}
		if _, err := f.Context("prod"); err == nil || !strings.Contains(err.Error(), "prod") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"contexts:\n  a:\n    sever: x\n":       "Did you mean server?",
		"contexts:\n  a:\n    server: {b: c}\n": "server of the context a",
		"context:\n  a: {}\n":                   "Did you mean contexts?",
		"contexts: [a]\n":                       "contexts",
		"a: b: c\n":                             "mapping values",
	} {
		if _, err := Load(file(t, text, 0o600), keys, secrets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestPrivate checks that credentials in a file that others can read are refused, and the
// name of a file with credentials isn't.
func TestPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	secret := "contexts:\n  prod:\n    auth: digest:ann:secret\n"
	if _, err := Load(file(t, example, 0o664), keys, secrets); err == nil || !strings.Contains(err.Error(), "can write") {
		t.Errorf("a file that the group can write: %v", err)
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620} {
		_, err := Load(file(t, secret, mode), keys, secrets)
		if err == nil || !strings.Contains(err.Error(), "chmod 600") || strings.Contains(err.Error(), "ann:secret") {
			t.Errorf("%o: %v", mode, err)
		}
	}
	for _, path := range []string{file(t, secret, 0o600), file(t, strings.Replace(secret, "digest:ann:secret", `"@file"`, 1), 0o644)} {
		if _, err := Load(path, keys, secrets); err != nil {
			t.Error(err)
		}
	}
}

// TestUse checks that only the current context changes, and neither comments nor the mode.
func TestUse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{example, strings.Replace(example, "current-context: dev\n", "", 1)} {
		path := file(t, text, 0o640)
		f, err := Load(path, keys, secrets)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Use("nothing"); err == nil {
			t.Error("an unknown context became the current one")
		}
		if err := f.Use("prod"); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load(path, keys, secrets)
		if err != nil || again.Current != "prod" || !strings.Contains(string(written), "# mine") || !strings.Contains(string(written), "# on this machine") {
			t.Errorf("%v\n%s", err, written)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for variables, want := range map[string]string{
		"ZKGO_CONFIG=/a/b.yaml XDG_CONFIG_HOME=/x HOME=/h": "/a/b.yaml",
		"XDG_CONFIG_HOME=/x HOME=/h":                       "/x/zkgo/config.yaml",
		"XDG_CONFIG_HOME=x HOME=/h":                        "/h/.config/zkgo/config.yaml", // the specification ignores relative paths
		"HOME=/h":                                          "/h/.config/zkgo/config.yaml",
		"":                                                 "",
	} {
		got, err := Path(func(name string) string {
			for _, v := range strings.Fields(variables) {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if err != nil || filepath.ToSlash(got) != want {
			t.Errorf("%s: %q, %v", variables, got, err)
		}
	}
}

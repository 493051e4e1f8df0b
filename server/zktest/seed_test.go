package zktest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/server/zktest"
)

const seededDump = `/ = "top"
  app = "own"
    config = "v1"
    locks
    n = "1.50"
    yes = "true"
  jobs
    1 = "a\nb"
`

func TestSeedsAreTheSame(t *testing.T) {
	t.Parallel()
	yaml := `
"": top
app: {"": own, config: v1, locks: {}, n: 1.50, yes: true}
/jobs/1: |-
  a
  b
`
	json := `{"": "top", "app": {"": "own", "config": "v1", "locks": null, "n": 1.50, "yes": true}, "jobs": {"/1": "a\nb"}}`
	dir := t.TempDir()
	for name, seed := range map[string]func(*zktest.Server){
		"json": func(zs *zktest.Server) { zs.SeedJSON(json) },
		"yaml": func(zs *zktest.Server) { zs.SeedYAML(yaml) },
		"text": func(zs *zktest.Server) { zs.SeedText(seededDump) },
		"a.json": func(zs *zktest.Server) {
			zs.SeedFile(write(t, dir, "a.json", json))
		},
		"a.yml": func(zs *zktest.Server) { zs.SeedFile(write(t, dir, "a.yml", yaml)) },
		"a.txt": func(zs *zktest.Server) { zs.SeedFile(write(t, dir, "a.txt", seededDump)) },
	} {
		zs := zktest.Run(t)
		seed(zs)
		if got := zs.Dump(); got != seededDump {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// refusing is a test that turns Fatal into the end of one function.
type refusing struct {
	testing.TB
	said string
}

func (r *refusing) Fatalf(f string, a ...any) { r.said = fmt.Sprintf(f, a...); panic(r) }
func (r *refusing) Fatal(a ...any)            { r.Fatalf("%s", fmt.Sprint(a...)) }

// refused returns the message with which f fails its test.
func refused(t *testing.T, r *refusing, f func()) string {
	t.Helper()
	r.said = ""
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		f()
	}()
	return r.said
}

func TestInvalidSeeds(t *testing.T) {
	t.Parallel()
	r := &refusing{TB: t}
	zs := zktest.Run(r)
	for text, f := range map[string]func(){
		"list":       func() { zs.SeedJSON(`{"a": [1]}`) },
		"end":        func() { zs.SeedJSON(`{} {}`) },
		"an object":  func() { zs.SeedJSON(`{"a": {"": {"b": "c"}}}`) },
		"line 2":     func() { zs.SeedYAML("a: b\nc: [d]") },
		"duplicate":  func() { zs.SeedYAML("a: b\na: c") },
		"two spaces": func() { zs.SeedText("/\n    a\n") },
		"quoted":     func() { zs.SeedText("/\n  a = b\n") },
		"no such":    func() { zs.SeedFile("/nowhere/a.json") },
		"null":       func() { zs.SeedJSON(`{"a\u0000": "b"}`) },
	} {
		if said := refused(t, r, f); !strings.Contains(said, text) && text != "null" || said == "" {
			t.Errorf("%s: %q", text, said)
		}
	}
	if got := zs.Dump(); got != "/\n" {
		t.Errorf("and yet:\n%s", got)
	}
}

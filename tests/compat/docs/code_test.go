package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// fragment surrounds Go code that isn't a whole file. Its parameters are the variables that the
// pages use without a declaration.
const fragment = `package shown

import (
	%s
)

func shown(ctx context.Context, data, newStock []byte, work func(<-chan struct{}, any)) error {
	%s
	use(%s)
	return nil
}

func use(...any) {}
`

// imports are the packages that fragments use, by name.
var imports = map[string]string{
	"context": "context", "net": "net", "time": "time",
	"client": "github.com/zkgo/zkgo/client", "recipes": "github.com/zkgo/zkgo/recipes",
	"lock": "github.com/zkgo/zkgo/recipes/lock", "server": "github.com/zkgo/zkgo/server",
	"zk": "github.com/go-zookeeper/zk",
}

var declared = regexp.MustCompile(`(?m)^([a-z, ]+) := `)

// program makes a whole file of the Go code that a page shows.
func program(code string) string {
	if strings.HasPrefix(code, "package ") {
		return code
	}
	code = strings.ReplaceAll(code, "{ … }", "{ return err }")
	var used, names []string
	for name, path := range imports {
		if name == "context" || strings.Contains(code, name+".") {
			used = append(used, fmt.Sprintf("%q", path))
		}
	}
	for _, found := range declared.FindAllStringSubmatch(code, -1) {
		names = append(names, found[1])
	}
	return fmt.Sprintf(fragment, strings.Join(used, "\n"), code, strings.Join(names, ", "))
}

// compile compiles files as packages of this module.
func compile(t *testing.T, codes []string) error {
	t.Helper()
	overlay, args := map[string]string{}, []string{"build", "-overlay", ""}
	dir := t.TempDir()
	for i, code := range codes {
		name := fmt.Sprintf("shown%d", i)
		real := filepath.Join(dir, name+".go")
		must.Do(t, os.WriteFile(real, []byte(program(code)), 0o600))
		overlay[filepath.Join(root(t), "tests/compat/docs", name, "shown.go")] = real
		args = append(args, "./"+name)
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err == nil {
		args[2] = filepath.Join(dir, "overlay.json")
		err = os.WriteFile(args[2], list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// TestGoCompiles compiles the Go code of all pages.
func TestGoCompiles(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, p := range pages(t) {
		codes = append(codes, p.code["go"]...)
	}
	if len(codes) < 5 {
		t.Fatalf("only %d blocks of Go code found", len(codes))
	}
	if err := compile(t, codes); err != nil {
		t.Error(err)
	}
	if compile(t, []string{"c, err := client.Connects(ctx, \"zk1:2181\")\nif err != nil { … }\n"}) == nil {
		t.Error("a function that doesn't exist compiles")
	}
}

// TestExcerpts checks that the Python and Java code of the README is part of code that the
// tests of testserver run.
func TestExcerpts(t *testing.T) {
	t.Parallel()
	var run strings.Builder
	for _, name := range []string{"junit/src/test/java/WorkerTest.java", "pytest/test_worker.py"} {
		run.Write(must.Get(os.ReadFile(filepath.Join(root(t), "tests/compat/testserver", name)))(t))
	}
	found := 0
	for _, p := range pages(t) {
		for _, code := range append(p.code["java"], p.code["python"]...) {
			if p.name != "README.md" {
				continue
			}
			found++
			if !strings.Contains(run.String(), code) {
				t.Errorf("%s: no test runs\n%s", p.name, code)
			}
		}
	}
	if found == 0 {
		t.Error("no code found")
	}
}

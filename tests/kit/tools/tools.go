// Package tools finds what workers in other languages need: Java with Curator, and Python
// with Kazoo. tests/compat/interop/run.sh installs it.
//
// It imports tests/kit/process.
package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// Tools are the tools that workers in other languages need.
type Tools struct {
	java, jars string
	// Python is the path of an interpreter that has Kazoo.
	Python string
}

// Find installs missing tools, or skips the test if the environment doesn't ask for it.
func Find(t testing.TB) Tools {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" && os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("needs Java, Maven, Python and the package registries: set ZKGO_LIVE=1")
	}
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(root, "tests", "compat", "interop", "run.sh"), "--install").Output()
	if err != nil {
		t.Fatalf("run.sh --install: %v\n%s", err, out)
	}
	found := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			found[key] = value
		}
	}
	k := Tools{java: found["java"], jars: found["curator"], Python: found["python"]}
	if k.java == "" || k.jars == "" || k.Python == "" {
		t.Fatalf("run.sh --install names not everything: %s", out)
	}
	return k
}

// Java compiles a program that uses Curator and returns the command that runs it. The class
// must have the same name as the file.
func (k Tools) Java(t testing.TB, source string) []string {
	t.Helper()
	classes := t.TempDir()
	out, err := exec.Command("javac", "-nowarn", "-d", classes, "-cp", k.jars+"/*", source).CombinedOutput()
	if err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return []string{k.java, "-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-cp", classes + string(os.PathListSeparator) + k.jars + "/*", strings.TrimSuffix(filepath.Base(source), ".java")}
}

package conformance_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/compat/conformance"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

var record = flag.Bool("record", false, "record the goldens anew from the real server")

// live reports whether the real server runs beside the one under test.
func live() bool { return os.Getenv("ZKGO_LIVE") == "1" }

// scripts returns every script of testdata, parsed.
func scripts(t *testing.T) []*conformance.Script {
	t.Helper()
	files := must.Get(filepath.Glob("testdata/*.txt"))(t)
	var all []*conformance.Script
	for _, file := range files {
		if filepath.Base(file) == "differences.txt" {
			continue
		}
		s := must.Get(conformance.ReadScript(file))(t)
		all = append(all, s)
	}
	return all
}

func goldenFile(script string) string { return filepath.Join("testdata", script+".golden") }

// golden returns the recorded transcript of the real server.
func golden(t *testing.T, script string) string {
	t.Helper()
	b, err := os.ReadFile(goldenFile(script))
	if err != nil {
		t.Fatalf("no golden (go test ./tests/compat/conformance -record): %v", err)
	}
	return string(b)
}

// onReal runs the script against a fresh real server.
func onReal(t *testing.T, s *conformance.Script) string {
	t.Helper()
	options := oracle.Options{Config: s.Server}
	for _, property := range s.JVM {
		options.JVM = append(options.JVM, "-D"+property)
	}
	server := oracle.Start(t, options)
	transcript, err := conformance.Run(s, server.Addr())
	server.Stop()
	if err != nil {
		t.Fatalf("%v\ntranscript:\n%s\nserver:\n%s", err, tail(transcript, 30), tail(server.Log(), 12))
	}
	return transcript
}

func tail(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// TestRealServer checks the golden files against the real server, or records
// them.
func TestRealServer(t *testing.T) {
	if !live() && !*record {
		t.Skip("set ZKGO_LIVE=1 to hold the goldens against the real server, or -record to record them")
	}
	oracle.Need(t)
	for _, s := range scripts(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			got := onReal(t, s)
			if *record {
				must.Do(t, os.WriteFile(goldenFile(s.Name), []byte(got), 0o644))
				return
			}
			if d := conformance.Compare(golden(t, s.Name), got); d != "" {
				t.Errorf("the real server does not repeat its golden: %s", d)
			}
		})
	}
}

// TestAmount checks that the suite doesn't shrink unnoticed.
func TestAmount(t *testing.T) {
	const wantScripts, wantRequests = 70, 11900
	all := scripts(t)
	requests := 0
	for _, s := range all {
		n, err := s.Requests()
		if err != nil {
			t.Error(err)
		}
		requests += n
	}
	t.Log(strconv.Itoa(len(all)), "scripts,", requests, "requests")
	if len(all) < wantScripts || requests < wantRequests {
		t.Errorf("%d scripts with %d requests, want %d and %d", len(all), requests, wantScripts, wantRequests)
	}
}

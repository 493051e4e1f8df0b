package checkers_test

import (
	"flag"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/must"
)

var historyFile = flag.String("history", "", "file of a history for TestHistoryFile")

// TestHistoryFile checks a history that a simulation or a chaos run has kept:
//
//	go test ./tests/kit/checkers -run TestHistoryFile -v -history=/tmp/run.jsonl
func TestHistoryFile(t *testing.T) {
	t.Parallel()
	if *historyFile == "" {
		t.Skip("no -history was given")
	}
	v := must.Get(checkers.CheckFile(*historyFile, checkers.Options{}))(t)
	t.Logf("\n%s", v)
	if !v.OK() {
		t.Fail()
	}
}

// Package cost keeps tests cheap: fewer cases with -short, and directories in memory.
//
// We run the plain tests in full. With -short, we run them under the race detector, which costs
// ten times as much, and sees nothing more in cases that differ only in their data or length.
//
// It imports only the standard library and goleak.
package cost

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// InShort returns few with -short, and all otherwise.
func InShort[T any](few, all T) T {
	if testing.Short() {
		return few
	}
	return all
}

// MeasuresMemory skips a test with -short, because it measures only memory.
func MeasuresMemory(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures memory; not with -short")
	}
}

// Main is a TestMain that looks for leaked goroutines. It puts the directories of all tests into
// memory if the machine has such a file system: these tests sync a lot, and other tests cover the
// effect of that.
func Main(m *testing.M) {
	dir, err := os.MkdirTemp("/dev/shm", "zkgo-test")
	if err != nil {
		goleak.VerifyTestMain(m)
		return
	}
	_ = os.Setenv("TMPDIR", dir) // fails only for a name without letters
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

package server

import (
	"testing"

	"github.com/zkgo/zkgo/tests/kit/wait"
)

// eventually waits for a condition that isn't signaled.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	wait.Eventually(t, what, ok)
}

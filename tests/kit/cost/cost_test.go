package cost_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/cost"
)

func TestMain(m *testing.M) { cost.Main(m) }

func TestInShort(t *testing.T) {
	t.Parallel()
	want := 20
	if testing.Short() {
		want = 5
	}
	if got := cost.InShort(5, 20); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestDirectoriesAreInMemory: directories of tests are in /dev/shm where there is one.
func TestDirectoriesAreInMemory(t *testing.T) {
	t.Parallel()
	if st, err := os.Stat("/dev/shm"); err != nil || !st.IsDir() {
		t.Skip("this machine has no /dev/shm")
	}
	if dir := t.TempDir(); !strings.HasPrefix(dir, "/dev/shm/") {
		t.Errorf("a test gets %s", dir)
	}
}

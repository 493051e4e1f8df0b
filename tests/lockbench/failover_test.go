package lockbench

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// asked skips what starts servers of others, unless it is asked for: then it
// fails where they are missing.
func asked(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" && os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("starts real servers: set ZKGO_LIVE=1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestRedisFailover shows what Redis's documentation says: an acknowledged lock
// is lost when the primary fails before its replica has heard of it.
func TestRedisFailover(t *testing.T) {
	ctx := asked(t)
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("Debian's redis-server is not installed")
	}
	timeline, err := RedisFailover(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s:\n%s", timeline.Name, timeline)
	if !timeline.Both {
		t.Error("the lock survived: this shows nothing")
	}
}

// TestZkgoFailover: in the same order of events nobody holds the lock beside its
// holder.
func TestZkgoFailover(t *testing.T) {
	ctx := asked(t)
	timeline, err := ZkgoFailover(ctx, t.TempDir(), process.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s:\n%s", timeline.Name, timeline)
	if timeline.Both {
		t.Error("two held the lock")
	}
}

package lockbench

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// asked skips a test that starts other projects' servers, unless the environment asks for
// it: then the test fails if they are missing.
func asked(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" && os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("starts real servers: set ZKGO_LIVE=1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestRedisFailover shows what Redis's documentation describes: an acknowledged lock is
// lost when the primary fails before its replica has received it.
func TestRedisFailover(t *testing.T) {
	ctx := asked(t)
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("Debian's redis-server is not installed")
	}
	timeline := must.Get(RedisFailover(ctx, t.TempDir()))(t)
	t.Logf("%s:\n%s", timeline.Name, timeline)
	if !timeline.Both {
		t.Error("the lock survived: this shows nothing")
	}
}

// TestZkgoFailover: with the same order of events, the lock should never have two holders.
func TestZkgoFailover(t *testing.T) {
	ctx := asked(t)
	timeline := must.Get(ZkgoFailover(ctx, t.TempDir(), process.Binary(t)))(t)
	t.Logf("%s:\n%s", timeline.Name, timeline)
	if timeline.Both {
		t.Error("two held the lock")
	}
}

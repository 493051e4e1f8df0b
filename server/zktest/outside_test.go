package zktest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// TestAgainstAnotherEnsemble checks that with ZKTEST_ADDR, Run and RunCluster represent the
// servers there, and each test begins and ends with an empty tree.
func TestAgainstAnotherEnsemble(t *testing.T) { //nolint:paralleltest // it sets a variable
	other := zktest.Run(t)
	t.Setenv("ZKTEST_ADDR", strings.Join(other.Addrs(), ","))

	t.Run("server", func(t *testing.T) {
		zs := zktest.Run(t)
		zs.Seed(map[string]string{"/app/config": "v1", "/jobs": ""})
		zs.Set("/app/config", "v2")
		if got := zs.Get("/app/config"); got != "v2" || zs.Stat("/app/config").Version != 1 || other.Get("/app/config") != "v2" {
			t.Errorf("%q %+v %q", got, zs.Stat("/app/config"), other.Get("/app/config"))
		}
		c := zs.Client(t)
		if _, err := c.Create(t.Context(), "/jobs/1", []byte("x"), client.Ephemeral); err != nil {
			t.Fatal(err)
		}
		zs.WaitExists("/jobs/1")
		if got := zs.Dump(); got != other.Dump() || !strings.Contains(got, "ephemeral") {
			t.Errorf("Dump has\n%swant\n%s", got, other.Dump())
		}
		zs.Delete("/app")
		zs.WaitGone("/app")
		if got := zs.Children("/"); !slices.Equal(got, []string{"jobs"}) {
			t.Errorf("children %q", got)
		}
		conn := connect(t, zs)
		if ok, _, err := conn.Exists("/jobs"); !ok || err != nil {
			t.Error(ok, err)
		}
		if !slices.Equal(zs.Addrs(), other.Addrs()) || !zs.Running() || zs.Paused() {
			t.Errorf("addresses %q, running %v, paused %v", zs.Addrs(), zs.Running(), zs.Paused())
		}
	})
	if got := other.Children("/"); !slices.Equal(got, []string{"zookeeper"}) {
		t.Errorf("the test leaves %q", got)
	}
	t.Run("cluster", func(t *testing.T) {
		cl := zktest.RunCluster(t, 3)
		cl.WaitServing()
		cl.Server(2).Set("/a", "1")
		if got := cl.Server(1).Get("/a"); got != "1" {
			t.Errorf("%q", got)
		}
		c, _ := dial(t, cl.Hosts(), cl.Dialer())
		create(t, c, "/b", "", 0)
	})
}

// recordsSkip keeps the reason why a test is skipped.
type recordsSkip struct {
	*testing.T
	why string
}

func (r *recordsSkip) Skipf(format string, args ...any) {
	r.why = fmt.Sprintf(format, args...)
	r.T.Skip(r.why)
}

// TestSkipsAgainstAnotherEnsemble checks that a call that another ensemble can't support
// skips the test, with the reason.
func TestSkipsAgainstAnotherEnsemble(t *testing.T) { //nolint:paralleltest // it sets a variable
	other := zktest.Run(t)
	t.Setenv("ZKTEST_ADDR", strings.Join(other.Addrs(), ","))
	for what, call := range map[string]func(t zktest.TB){
		"clock":         func(t zktest.TB) { zktest.Run(t).Advance(time.Second) },
		"faults":        func(t zktest.TB) { zktest.Run(t).FailNext(zktest.Match{}, proto.ErrNoAuth) },
		"sessions":      func(t zktest.TB) { zktest.Run(t).Sessions() },
		"process":       func(t zktest.TB) { zktest.Run(t).Snapshot() },
		"configuration": func(t zktest.TB) { zktest.Run(t, zktest.WithConfig(func(*server.Config) {})) },
	} {
		t.Run(what, func(t *testing.T) {
			r := &recordsSkip{T: t}
			defer func() {
				if !t.Skipped() || !strings.Contains(r.why, what) || !strings.Contains(r.why, "ZKTEST_ADDR") {
					t.Errorf("skipped %v: %q", t.Skipped(), r.why)
				}
			}()
			call(r)
		})
	}
	t.Run("cluster", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("a partition of another ensemble")
			}
		}()
		zktest.RunCluster(t, 3).Partition([]int{1})
	})
}

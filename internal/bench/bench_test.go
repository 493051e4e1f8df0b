package bench_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measure runs a work until it has results. On a busy machine a short run may
// complete no operation.
func measure(t *testing.T, cfg bench.Config) *bench.Result {
	t.Helper()
	cfg.Warmup = -1
	for d := 50 * time.Millisecond; ; d *= 2 {
		cfg.Duration = d
		r := must.Get(bench.Run(t.Context(), cfg))(t)
		if r.Ops > 0 || r.ErrorCount() > 0 {
			return r
		}
		if d > 30*time.Second {
			t.Fatalf("%s does nothing in %v", cfg.Work, d)
		}
	}
}

// TestWorks tests that every work does what its description promises, with every server,
// and leaves no znodes.
func TestWorks(t *testing.T) {
	t.Parallel()
	ops := map[string]proto.Op{
		"get": proto.OpGetData, "exists": proto.OpExists, "children": proto.OpGetChildren, "set": proto.OpSetData, "mixed": proto.OpSetData,
		"multi": proto.OpMulti, "create": proto.OpCreate, "create-delete": proto.OpDelete, "ephemeral-sequential": proto.OpCreate,
		"watch": proto.OpSetData, "sessions": proto.OpCloseSession, "lock": proto.OpDelete, "lock-shared": proto.OpDelete, "load": proto.OpCreate,
	}
	for _, work := range bench.Works() {
		t.Run(work.Name, func(t *testing.T) {
			t.Parallel()
			zs := zktest.Run(t)
			before := zs.Dump()
			r := measure(t, bench.Config{Work: work.Name, Servers: zs.Addrs(), Conns: 4, Window: 3, Nodes: 50, Writes: 0.5, Ops: 3, Root: "/a/b"})
			if len(r.Errors) > 0 {
				t.Errorf("errors %v", r.Errors)
			}
			if r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P99 || r.OpsPerSecond <= 0 {
				t.Errorf("%+v", r)
			}
			if zs.Requests(zktest.Match{Op: ops[work.Name]}) == 0 {
				t.Errorf("the server was never asked to %v", ops[work.Name])
			}
			zs.Delete("/a/b")
			zs.Delete("/a")
			if after := zs.Dump(); after != before {
				t.Errorf("left behind:\n%s", after)
			}
			zs.Wait("no session is left", func() bool { return len(zs.Sessions()) == 0 })
		})
	}
}

func TestSpreadsOverServers(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3)
	var addrs []string
	for id := 1; id <= 3; id++ {
		addrs = append(addrs, cl.Server(id).Addrs()...)
	}
	r := measure(t, bench.Config{Work: "mixed", Servers: addrs, Conns: 3})
	if len(r.Errors) > 0 {
		t.Errorf("errors %v", r.Errors)
	}
	for id := 1; id <= 3; id++ {
		if cl.Server(id).Requests(zktest.Match{Op: proto.OpGetData}) == 0 {
			t.Errorf("nothing was read from server %d", id)
		}
	}
}

func TestLoadCreatesItsZnodes(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	r := measure(t, bench.Config{Work: "load", Servers: zs.Addrs(), Conns: 3, Nodes: 1000, Size: 7, Keep: true})
	if r.Ops != 1000 {
		t.Errorf("%d operations", r.Ops)
	}
	if n := strings.Count(zs.Dump(), "\n"); n < 1000+32 {
		t.Errorf("%d lines:\n%s", n, zs.Dump())
	}
}

func TestErrorsAreCountedByName(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.FailNext(zktest.Match{Op: proto.OpGetData}, proto.ErrNoAuth)
	r := measure(t, bench.Config{Work: "get", Servers: zs.Addrs()})
	if r.Errors[proto.ErrNoAuth.String()] != 1 || r.ErrorCount() != 1 {
		t.Errorf("errors %v", r.Errors)
	}
}

// TestLostConnectionIsReplaced tests that a run replaces its connections when the
// server drops them.
func TestLostConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	cfg := bench.Config{Work: "get", Servers: zs.Addrs(), Conns: 2, Window: 4, Warmup: -1, Duration: time.Minute, Progress: func(bench.Sample) {}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := bench.Run(ctx, cfg)
		ended <- err
	}()
	get := zktest.Match{Op: proto.OpGetData}
	zs.Wait("reads", func() bool { return zs.Requests(get) > 100 })
	zs.DropConnections()
	n := zs.Requests(get)
	zs.Wait("reads by new connections", func() bool { return zs.Requests(get) > n+100 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestAuthIsSent(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	measure(t, bench.Config{Work: "get", Servers: zs.Addrs(), Auth: []proto.AuthPacket{{Scheme: "digest", Auth: []byte("a:b")}}})
	if zs.Requests(zktest.Match{Op: proto.OpAuth}) == 0 {
		t.Error("no identity was shown")
	}
	_, err := bench.Run(t.Context(), bench.Config{Work: "get", Servers: zs.Addrs(), Auth: []proto.AuthPacket{{Scheme: "none"}}})
	if !errors.Is(err, proto.ErrAuthFailed) {
		t.Errorf("a scheme that is not there: %v", err)
	}
}

func TestProcessesAreMeasured(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	cfg := bench.Config{Work: "get", Servers: zs.Addrs(), PIDs: []int{os.Getpid()}}
	if runtime.GOOS != "linux" {
		if _, err := bench.Run(t.Context(), cfg); err == nil {
			t.Error("measured where that is not known")
		}
		return
	}
	r := measure(t, cfg)
	if r.CPUPerOp == nil || r.RSS < 1<<20 {
		t.Errorf("%+v", r)
	}
	cfg.PIDs = []int{1 << 30}
	if _, err := bench.Run(t.Context(), cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that is not there: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	nobody := l.Addr().String()
	l.Close()
	zs := zktest.Run(t)
	for want, cfg := range map[string]bench.Config{
		"no such work":       {Work: "juggle", Servers: zs.Addrs()},
		"no server is given": {Work: "get"},
		"at least one":       {Work: "get", Servers: zs.Addrs(), Conns: -1},
		"between 0 and 1":    {Work: "mixed", Servers: zs.Addrs(), Writes: 2},
		"root":               {Work: "get", Servers: zs.Addrs(), Root: "relative"},
		"a duration":         {Work: "get", Servers: zs.Addrs(), Duration: -1},
		nobody:               {Work: "get", Servers: []string{nobody}},
	} {
		if _, err := bench.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	cpu := 1.25
	r := &bench.Result{Work: "set", Servers: []string{"a:1", "b:2"}, Conns: 64, Window: 8, Seconds: 5, Ops: 1000, OpsPerSecond: 200,
		Latency: bench.Latency{P50: 12, P99: 3400, Max: 2e6}, Errors: map[string]int64{"NoNode": 2, "ConnectionLoss": 1},
		CPUPerOp: &cpu, RSS: 20 << 20, Figures: []bench.Figure{{Name: "rounds", Value: 3}}}
	var text bytes.Buffer
	must.Do(t, errors.Join(bench.WriteTextHead(&text), r.WriteText(&text)))
	for _, want := range []string{"64x8", "200", "12.0us", "3.40ms", "2.00s", "1.2us", "20.0 MiB", "rounds: 3", "error NoNode: 2"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	var table bytes.Buffer
	must.Do(t, bench.WriteCSV(&table, []*bench.Result{r, {Work: "get"}}))
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 3 || rows[1][1] != "a:1,b:2" || rows[1][15] != "3" {
		t.Errorf("%v %q", err, rows)
	}
	var back bench.Result
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || back.Latency != r.Latency || *back.CPUPerOp != cpu {
		t.Errorf("%v %s", err, b)
	}
}

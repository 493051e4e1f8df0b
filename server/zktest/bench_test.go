package zktest_test

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// We report the median in addition to the mean, because on a busy machine the mean mostly
// reflects the other processes.

// medians collects durations.
type medians []time.Duration

func (m *medians) add(d time.Duration) { *m = append(*m, d) }

func (m *medians) report(b *testing.B) {
	slices.Sort(*m)
	b.ReportMetric(float64((*m)[len(*m)/2].Microseconds())/1000, "ms/median")
}

// startup measures the time from Run until the reply to the first request.
func startup(b *testing.B, opts []zktest.Option, connect func(testing.TB, *zktest.Server) *raw) {
	var times medians
	for b.Loop() {
		begun := time.Now()
		zs := zktest.Run(b, opts...)
		c := connect(b, zs)
		c.create("/a", proto.ModePersistent)
		times.add(time.Since(begun))
		b.StopTimer()
		c.nc.Close()
		zs.Close()
		b.StartTimer()
	}
	times.report(b)
}

// BenchmarkRun measures Run, a session and a create, without a socket.
func BenchmarkRun(b *testing.B) { startup(b, nil, rawConnect) }

// BenchmarkRunTCP measures the same over TCP.
func BenchmarkRunTCP(b *testing.B) { startup(b, nil, rawTCP) }

// BenchmarkRunOnDisk measures the same with data on disk.
func BenchmarkRunOnDisk(b *testing.B) {
	startup(b, []zktest.Option{zktest.OnDisk()}, rawConnect)
}

// BenchmarkRunCluster measures RunCluster until all servers serve and vote.
func BenchmarkRunCluster(b *testing.B) {
	for _, n := range []int{3, 5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var times medians
			for b.Loop() {
				begun := time.Now()
				cl := zktest.RunCluster(b, n)
				times.add(time.Since(begun))
				b.StopTimer()
				cl.Close()
				b.StartTimer()
			}
			times.report(b)
		})
	}
}

// BenchmarkReset measures Reset after a few changes, and after the deletion of all
// 1,000 znodes.
func BenchmarkReset(b *testing.B) {
	for name, change := range map[string]func(zs *zktest.Server){
		"changed": func(zs *zktest.Server) { zs.Seed(map[string]string{"/a1": "other", "/new": "", "/a2/b20": "x"}) },
		"deleted": func(zs *zktest.Server) { zs.Delete("/") },
	} {
		b.Run(name, func(b *testing.B) {
			zs := zktest.Run(quietTB{b})
			nodes := make(map[string]string)
			for i := range 100 {
				for j := range 9 {
					nodes[fmt.Sprintf("/a%d/b%d", i, 10*i+j)] = "some data"
				}
			}
			zs.Seed(nodes) // 100 parents, 900 children
			snap := zs.Snapshot()
			var times medians
			for b.Loop() {
				b.StopTimer()
				change(zs)
				b.StartTimer()
				begun := time.Now()
				zs.Reset(snap)
				times.add(time.Since(begun))
			}
			times.report(b)
		})
	}
}

// quietTB drops the log, because a line for each Reset would clutter a benchmark.
type quietTB struct{ *testing.B }

func (quietTB) Logf(string, ...any) {}

// rawTCP is rawConnect over a socket.
func rawTCP(t testing.TB, zs *zktest.Server) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", zs.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

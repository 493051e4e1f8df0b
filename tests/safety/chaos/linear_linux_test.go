package chaos

import (
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/workload"
)

// TestLinearizableReads has clients that read in each of the three ways in which
// a read can be linearizable, and others that write, while the leader is stopped
// until it has a successor, or cut off with its clients, and returns believing
// that it leads.
func TestLinearizableReads(t *testing.T) {
	t.Parallel()
	needed(t)
	const byConfig = 1
	c := startWith(t, Options{Bin: process.Binary(t), Dir: t.TempDir(), Servers: 3, Store: *store, SnapCount: 1 << 20, Seed: 1, Linear: []int{byConfig}})
	rec := history.NewRecorder(nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error)
	loads := readersAndWriters(c, rec, byConfig)
	for _, load := range loads {
		go func() { ended <- workload.Run(ctx, load) }()
	}
	s := &scene{Cluster: c, rnd: rand.New(rand.NewPCG(1, stepSeed)), done: make(chan struct{})}
	for range 4 {
		must.Do(t, napLeader(s))
	}
	must.Do(t, s.cutLeader())
	stop()
	for range loads {
		must.Do(t, <-ended)
	}

	h := rec.History()
	v := checkers.Check(h, checkers.Options{Search: time.Minute})
	t.Logf("%d elections\n%v", c.Elections(), v)
	if !v.OK() {
		t.Error("a promise was broken")
	}
	for _, r := range v.Results {
		if r.Checker == "registers" && len(r.Undecided) > 0 {
			t.Errorf("undecided: %v", r.Undecided)
		}
	}
	for way, n := range linearReads(h, byConfig) {
		if n < 100 {
			t.Errorf("only %d linearizable reads %s were answered", n, way)
		}
	}
}

// readersAndWriters describes clients that do everything on any server, and
// clients of each server that only read. All use the same registers.
func readersAndWriters(c *Cluster, rec *history.Recorder, byConfig int) []workload.Config {
	var conns atomic.Int64
	load := workload.Config{Seed: 1, Servers: []int{1, 2, 3}, Recorder: rec, Clients: 6, Lockers: -1, Linear: 50, LinearServers: []int{byConfig},
		Registers: 60, PerRegister: 1 << 30, Think: 10 * time.Millisecond, Timeout: 6 * time.Second, Calm: true,
		Dial: func(ctx context.Context, server int) (net.Conn, error) {
			return c.Dial(ctx, int(conns.Add(1))%places, server)
		}}
	loads := []workload.Config{load}
	for _, m := range c.Members {
		load.Seed, load.Servers, load.Clients, load.Readers = uint64(1+m.ID), []int{m.ID}, -1, 3
		loads = append(loads, load)
	}
	return loads
}

// linearReads counts the answered reads, by the way in which they are
// linearizable.
func linearReads(h *history.History, byConfig int) map[string]int {
	ways := map[string]int{"by the server's configuration": 0, "for a session": 0, "after a sync": 0}
	asked, synced := map[int]bool{}, map[int]int{} // connections, and where the last sync was
	for _, o := range h.Ops {
		switch {
		case o.Op == proto.OpAuth:
			asked[o.Conn] = true
		case o.Op == proto.OpSync && o.Answered():
			synced[o.Conn] = o.Sent
		}
	}
	for _, o := range h.Ops {
		switch {
		case o.Op != proto.OpGetData || !o.Answered():
		case o.Linear && asked[o.Conn]:
			ways["for a session"]++
		case o.Linear && o.Server == byConfig:
			ways["by the server's configuration"]++
		case synced[o.Conn] > 0:
			ways["after a sync"]++
		}
	}
	return ways
}

// cutLeader cuts the leader off from the other servers, but not from its clients,
// until another server has led for a moment.
func (s *scene) cutLeader() error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("server %d, the leader, is cut off", leader.ID)
	s.cut([]*Member{leader}, s.Others(leader))
	if err := s.replaced(epoch); err != nil {
		return err
	}
	s.hold(time.Second, time.Second)
	return s.healed()
}

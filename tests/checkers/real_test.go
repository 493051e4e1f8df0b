package checkers_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/checkers"
	"github.com/zkgo/zkgo/tests/history"
	"github.com/zkgo/zkgo/tests/workload"
)

// run is one run of the workload on a real ensemble in fake time.
type run struct {
	seconds int // default 10
	seed    uint64
	wrap    func(server int, nc net.Conn) net.Conn // between every client and its server; nil: nothing
	trouble func(cl *zktest.Cluster)               // while the clients work
	last    func(cl *zktest.Cluster)               // when the clients have ended
	change  func(cfg *workload.Config)
	alter   func(h *history.History) // before the check
}

// verdict runs it and checks what was recorded.
func (r run) verdict(t *testing.T) *checkers.Verdict {
	t.Helper()
	if r.seconds == 0 {
		r.seconds = 10
	}
	var v *checkers.Verdict
	synctest.Test(t, func(t *testing.T) {
		cl := zktest.RunCluster(t, 3, zktest.WithConfig(func(c *server.Config) { c.ContainerInterval = time.Second; c.MinSessionTimeout = time.Second }))
		rec := history.NewRecorder(nil)
		cfg := workload.Config{Seed: r.seed, Servers: []int{1, 2, 3}, Recorder: rec, Timeout: 4 * time.Second, Think: 60 * time.Millisecond,
			Dial: func(_ context.Context, id int) (net.Conn, error) {
				nc, err := cl.Server(id).Dial()
				if err == nil && r.wrap != nil {
					nc = r.wrap(id, nc)
				}
				return nc, err
			}}
		if r.change != nil {
			r.change(&cfg)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.seconds)*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- workload.Run(ctx, cfg) }()
		if r.trouble != nil {
			r.trouble(cl)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		cl.WaitServing()
		time.Sleep(10 * time.Second) // what was left behind expires, and followers catch up
		if r.last != nil {
			r.last(cl)
		}
		for _, s := range cl.Servers() {
			rec.State(workload.Inspect(rec, s.ID(), s.Server().Node(), true))
		}
		h := rec.History()
		if r.alter != nil {
			r.alter(h)
		}
		v = checkers.Check(h, checkers.Options{})
	})
	return v
}

func TestNothingWrong(t *testing.T) {
	t.Parallel()
	v := run{seconds: 20}.verdict(t)
	t.Logf("\n%s", v)
	if !v.OK() {
		t.Fail()
	}
}

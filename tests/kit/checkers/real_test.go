package checkers_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/workload"
)

// run is one run of the workload on a real ensemble in fake time.
type run struct {
	seconds int // default 10
	seed    uint64
	file    io.Writer
	wrap    func(server int, nc net.Conn) net.Conn // between every client and its server; nil: nothing
	trouble func(cl *zktest.Cluster)               // while the clients work
	last    func(cl *zktest.Cluster)               // after the clients have ended
	change  func(cfg *workload.Config)
}

// verdict performs the run and checks the history.
func (r run) verdict(t *testing.T) *checkers.Verdict {
	t.Helper()
	if r.seconds == 0 {
		r.seconds = 10
	}
	var v *checkers.Verdict
	synctest.Test(t, func(t *testing.T) {
		cl := zktest.RunCluster(t, 3, zktest.WithConfig(func(c *server.Config) { c.Znodes.ContainerInterval = time.Second; c.MinSessionTimeout = time.Second }))
		rec := history.NewRecorder(r.file)
		cfg := workload.Config{Seed: r.seed, Servers: []int{1, 2, 3}, Recorder: rec, Timeout: 4 * time.Second, Think: 60 * time.Millisecond,
			Dial: func(_ context.Context, id int) (net.Conn, error) {
				nc, err := cl.Server(id).Dial()
				if err == nil && r.wrap != nil {
					nc = r.wrap(id, nc)
				}
				return nc, err
			}}
		linearReads(&cfg)
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
		must.Do(t, <-done)
		cl.WaitServing()
		time.Sleep(10 * time.Second) // abandoned sessions expire, and followers catch up
		if r.last != nil {
			r.last(cl)
		}
		for _, s := range cl.Servers() {
			rec.State(workload.Inspect(rec, s.ID(), s.Server().Node(), true))
		}
		v = checkers.Check(rec.History(), checkers.Options{})
		must.Do(t, rec.Flush())
	})
	return v
}

func TestNothingWrong(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	v := run{seconds: 10, file: &file}.verdict(t)
	t.Logf("\n%s", v)
	if !v.OK() {
		t.Fail()
	}
	for _, r := range v.Results {
		for _, c := range r.Counts {
			if c.N == 0 && r.Checker != "expiry" {
				t.Errorf("%s: 0 %s: nothing was checked", r.Checker, c.What)
			}
		}
	}
	h := must.Get(history.Read(&file))(t)
	if again := checkers.Check(h, checkers.Options{}); again.String() != v.String() {
		t.Errorf("from the file:\n%s", again)
	}
}

package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// needed skips a test of real processes unless the environment asks for it, because it needs
// seconds of real time.
func needed(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKGO_REQUIRE") == "" && *duration == 0 {
		t.Skip("runs servers for some seconds: ZKGO_REQUIRE=1 or -args -duration=1m")
	}
}

// startCluster runs an ensemble of three servers for a test.
func startCluster(t *testing.T) *Cluster { return startServers(t, 3) }

func startServers(t *testing.T, n int) *Cluster {
	t.Helper()
	needed(t)
	return startWith(t, Options{Bin: process.Binary(t), Dir: t.TempDir(), Servers: n, Store: *store, SnapCount: 1 << 20, Seed: 1})
}

func startWith(t *testing.T, opt Options) *Cluster {
	t.Helper()
	trace := must.Get(NewTrace(filepath.Join(opt.Dir, "trace"), func(s string) { t.Log(s) }))(t)
	c := must.Get(NewCluster(opt, trace))(t)
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			for _, m := range c.Members {
				t.Logf("server %d:\n%s", m.ID, m.Logged(0))
			}
		}
		trace.Close() //nolint:errcheck // no test reads it
	})
	must.Do(t, c.Start())
	return c
}

// connect opens a session on a server.
func (m *Member) connect(t *testing.T, timeout time.Duration) *process.Client {
	t.Helper()
	c := must.Get(process.Connect(m.ClientAddr(), 0, nil, timeout))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestWipedServerDoesNotVote: A and B acknowledge X while C is down, B loses its disk, A
// dies. B and C are a majority by number, but neither knows X, so they must not serve. Once
// A is back, B should return by itself as another server.
func TestWipedServerDoesNotVote(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a, _, err := c.Leader()
	must.Do(t, err)
	b, third := c.Others(a)[0], c.Others(a)[1]
	third.Kill()
	must.Do(t, a.connect(t, 30*time.Second).Create("/x", []byte("acknowledged"), proto.ModePersistent))
	before := must.Get(b.raftID())(t)
	b.Kill()
	must.Do(t, b.wipe())
	a.Kill()
	must.Do(t, b.Start())
	must.Do(t, third.Start())
	served := c.Await("B and C serve without X", 12*time.Second, func(states []Status) bool {
		return states[b.ID-1].Mode == "leader" || states[third.ID-1].Mode == "leader"
	})
	if served == nil {
		t.Error("a majority that has forgotten a write has elected a leader")
	}
	must.Do(t, a.Start())
	must.Do(t, c.AwaitHealthy())
	for _, m := range c.Members {
		if data, _, err := m.connect(t, 30*time.Second).Get("/x"); err != nil || string(data) != "acknowledged" {
			t.Errorf("server %d has %q, %v", m.ID, data, err)
		}
	}
	after := must.Get(b.raftID())(t)
	if after == before {
		t.Errorf("server %d is %s again on an empty disk", b.ID, after)
	}
}

// pinger keeps a session alive whatever happens.
type pinger struct {
	c       *process.Client
	m       *Member
	dropped int
}

// ping sends one ping. If the connection was lost, it attaches to the same
// session over another; the session must exist.
func (p *pinger) ping() error {
	if _, err := p.c.Do(proto.OpPing, nil); err == nil {
		return nil
	}
	p.dropped++
	return p.attach()
}

func (p *pinger) attach() error {
	for deadline := time.Now().Add(patience); ; {
		c, err := process.Connect(p.m.ClientAddr(), p.c.Session, p.c.Password, p.c.Timeout)
		switch {
		case err == nil:
			p.c.Close() //nolint:errcheck // it is lost
			p.c = c
			return nil
		case errors.Is(err, proto.ErrSessionExpired):
			return fmt.Errorf("the session at server %d has expired", p.m.ID)
		case time.Now().After(deadline):
			return err
		}
	}
}

// every calls f repeatedly until the time is over or f fails.
func every(d, during time.Duration, f func() error) error {
	end := time.After(during)
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := f(); err != nil {
				return err
			}
		case <-end:
			return nil
		}
	}
}

// TestPauseExpiresNoSession stops all servers for three session timeouts while clients ping.
// No session with a client should expire, but the session without a client should.
func TestPauseExpiresNoSession(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	const timeout = 4 * time.Second
	var live []*pinger
	for _, m := range c.Members {
		live = append(live, &pinger{c: m.connect(t, timeout), m: m})
	}
	gone := c.Members[0].connect(t, timeout)
	must.Do(t, gone.Create("/gone", nil, proto.ModeEphemeral))
	gone.Close() //nolint:errcheck // the client is gone either way
	for _, p := range live {
		must.Do(t, p.c.Create(fmt.Sprintf("/live%d", p.m.ID), nil, proto.ModeEphemeral))
		must.Do(t, p.ping())
	}
	s := &scene{Cluster: c, done: make(chan struct{})}
	pings := make(chan error, len(live))
	must.Do(t, s.pause(3*timeout, 3*timeout, c.Members...))
	for _, p := range live {
		go func() { pings <- every(500*time.Millisecond, 3*timeout, p.ping) }()
	}
	for range live {
		if err := <-pings; err != nil {
			t.Error(err)
		}
	}
	must.Do(t, c.AwaitHealthy())
	for _, p := range live {
		if _, _, err := live[0].c.Get(fmt.Sprintf("/live%d", p.m.ID)); err != nil {
			t.Errorf("the ephemeral of the client at server %d: %v", p.m.ID, err)
		}
	}
	ended := every(100*time.Millisecond, patience, func() error {
		_, _, err := live[0].c.Get("/gone")
		return err
	})
	if !errors.Is(ended, proto.ErrNoNode) {
		t.Errorf("the ephemeral of a client that is gone: %v", ended)
	}
}

// TestRestartShowsNothingOld: a server that was away has thousands of entries to apply when
// a new client connects. The client's first read should not return a state that is older
// than its connection.
func TestRestartShowsNothingOld(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	leader, _, err := c.Leader()
	must.Do(t, err)
	m := c.Others(leader)[0]
	w := leader.connect(t, 30*time.Second)
	must.Do(t, w.Create("/n", []byte("0"), proto.ModePersistent))
	last := 0
	write := func(count int) {
		for range count / 100 {
			var reqs []process.Request
			for range 100 {
				last++
				reqs = append(reqs, process.Request{Op: proto.OpSetData, Record: &proto.SetDataRequest{Path: "/n", Data: strconv.AppendInt(nil, int64(last), 10), Version: -1}})
			}
			must.Do(t, w.Send(reqs...))
			for range reqs {
				r, err := w.Receive()
				must.Do(t, errors.Join(err, r.Err.Err()))
			}
		}
	}
	write(20000)
	for range 3 {
		m.Kill()
		write(5000)
		must.Do(t, m.Start())
		came := last
		data := must.Get(firstRead(m))(t)
		if n, err := strconv.Atoi(string(data)); err != nil || n < came {
			t.Errorf("the first read shows %q, %d was acknowledged before", data, came)
		}
	}
}

// firstRead returns the result of the first read of a new client, as soon as the server accepts it.
func firstRead(m *Member) ([]byte, error) {
	for deadline := time.Now().Add(patience); ; {
		c, err := process.Connect(m.ClientAddr(), 0, nil, 10*time.Second)
		if err == nil {
			data, _, rerr := c.Get("/n")
			c.Close() //nolint:errcheck // it is no longer needed
			if err = rerr; err == nil {
				return data, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, err
		}
	}
}

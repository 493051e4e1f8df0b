package takeover

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/formats"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// member is a zkgo server in this process that others may follow.
type member struct {
	t      *testing.T
	dir    string
	stream string  // its observerMasterPort
	mirror *Mirror // nil: it follows none
	cfg    server.Config
	*server.Server
}

// newMember starts a server that follows what o names, unless that is nothing.
func newMember(t *testing.T, o Options) *member {
	t.Helper()
	port := must.Get(oracle.FreePorts(1))(t)[0]
	dir := must.Get(os.MkdirTemp("", "zkgo"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &member{t: t, dir: dir, stream: fmt.Sprint("127.0.0.1:", port)}
	m.cfg = server.Config{
		DataDir: dir, ClientAddr: "127.0.0.1:0", Env: server.Env{Formats: formats.All()}, Znodes: server.Znodes{ExtendedTypes: true},
		TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Hour, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	m.cfg.Quorum.ObserverMasterAddr = m.stream
	m.start(o)
	t.Cleanup(func() { m.stop() })
	return m
}

// start starts the server on its directory. With DataDir, it follows the same ensemble as before.
func (m *member) start(o Options) {
	m.t.Helper()
	cfg := m.cfg
	if o.From != "" || o.DataDir != "" {
		o.Logger, o.ObserverID = cfg.Logger, ObserverID
		m.mirror = must.Get(Configure(o))(m.t)
		cfg.Env.Mirror = m.mirror
	}
	m.Server = must.Get(server.Start(context.WithoutCancel(m.t.Context()), cfg))(m.t)
	if m.mirror == nil {
		<-m.Ready()
	}
}

// stop stops the server.
func (m *member) stop() {
	if m.Server != nil {
		_ = m.Close() // it only lives for the test
		m.Server = nil
	}
}

// status returns the status of a server that follows.
func (m *member) status() Status { return m.mirror.StatusOf(m.Node()) }

// awaits waits for a status.
func (m *member) awaits(what string, ok func(Status) bool) {
	m.t.Helper()
	must.Do(m.t, wait.Success(20*time.Second, what, func() error {
		if s := m.status(); !ok(s) {
			return fmt.Errorf("%+v", s)
		}
		return nil
	}))
}

// follows waits until the server has the state of another one.
func (m *member) follows(other *member) {
	m.t.Helper()
	m.awaits("the server to follow", func(s Status) bool {
		_, _, zxid := other.Node().Mirroring().State()
		return s.InSync && s.Zxid == zxid
	})
}

// client returns a client of the server.
func (m *member) client() *client.Client {
	m.t.Helper()
	c := must.Get(client.Connect(m.t.Context(), m.ClientAddr()))(m.t)
	m.t.Cleanup(func() { _ = c.Close() })
	return c
}

// same checks that two servers have the same znodes and sessions.
func same(t *testing.T, got, want *member) {
	t.Helper()
	g, w := got.Node().Tree(), want.Node().Tree()
	w.RLock()
	defer w.RUnlock()
	g.RLock()
	defer g.RUnlock()
	if g.FullDigest() != w.FullDigest() {
		var has, wants strings.Builder
		_, _ = g.Dump(&has), w.Dump(&wants)
		t.Errorf("got\n%s\nwant\n%s", has.String(), wants.String())
	}
	gs, ws := slices.Collect(got.Node().Sessions().All), slices.Collect(want.Node().Sessions().All)
	if len(gs) != len(ws) {
		t.Errorf("%d sessions instead of %d", len(gs), len(ws))
	}
	for _, row := range ws {
		if own, _ := got.Node().Sessions().Get(row.ID); own.Password != row.Password || own.Timeout != row.Timeout {
			t.Errorf("session %+v instead of %+v", own, row)
		}
	}
}

// TestArrival: while a snapshot arrives, the status and Progress tell how much has arrived, and
// about how much there will be.
func TestArrival(t *testing.T) {
	t.Parallel()
	source := newMember(t, Options{})
	c := source.client()
	for n := range 6 {
		must.Get(c.Create(t.Context(), fmt.Sprint("/", n), make([]byte, 512<<10)))(t)
	}
	tr := source.Node().Tree()
	tr.RLock()
	expected := tr.NodeCount() - 1 // srvr counts the root twice
	tr.RUnlock()
	var mu sync.Mutex
	var seen []Arrival
	var during Status
	var m *member
	ready := make(chan struct{})
	m = newMember(t, Options{From: source.stream, Clients: source.ClientAddr(), Progress: func(a *Arrival) {
		if a == nil {
			a = new(Arrival)
		}
		mu.Lock()
		seen = append(seen, *a)
		first := len(seen) == 1
		mu.Unlock()
		if first {
			<-ready
			m.awaits("the estimate", func(s Status) bool { return s.Snapshot != nil && s.Snapshot.Expected > 0 })
			during = m.status()
		}
	}})
	close(ready)
	m.follows(source)
	wait.Eventually(t, "the end of the snapshot", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[len(seen)-1] == (Arrival{})
	})
	last := len(seen) - 1
	if during.Phase != "none" || during.Snapshot.Expected != expected || during.Snapshot.Bytes < 1<<20 || during.Snapshot.Znodes == 0 || during.Snapshot.Complete {
		t.Errorf("%+v %+v, not %d", during, during.Snapshot, expected)
	}
	if last < 3 || !seen[last-1].Complete || seen[last-1].Znodes < 6 || seen[last-1].Bytes < 3<<20 || seen[1].Bytes <= seen[0].Bytes {
		t.Errorf("%+v", seen)
	}
	if s := m.status(); s.Snapshot != nil {
		t.Errorf("a snapshot that is in the log: %+v", s.Snapshot)
	}
	same(t, m, source)
}

// TestExpect: the number of znodes comes from a server in the leader's epoch, not from another
// ensemble that has its port.
func TestExpect(t *testing.T) {
	t.Parallel()
	source := newMember(t, Options{})
	_, _, zxid := source.Node().Mirroring().State()
	for epoch, want := range map[int64]bool{zxid >> 32: true, zxid>>32 + 1: false} {
		m := must.Get(Configure(Options{From: "127.0.0.1:1,127.0.0.1:2", Clients: "127.0.0.1:3," + source.ClientAddr()}))(t)
		m.arrival = new(Arrival)
		m.expect(t.Context(), "127.0.0.1:1", epoch)
		if got := m.arrival.Expected > 0; got != want {
			t.Errorf("epoch %d: %+v", epoch, m.arrival)
		}
	}
}

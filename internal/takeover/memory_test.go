package takeover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestRecall: an option that the operator omits has its value from the last start, unless the
// ensemble is another one.
func TestRecall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := recall(dir, "", "c:1"); !errors.Is(err, ErrNoEnsemble) {
		t.Error(err)
	}
	m := New(Config{Memory: Memory{From: "a:1", Clients: "a:2", Source: mirrored.Zkgo}})
	m.save(dir, &m.cfg.Memory)
	for _, c := range []struct {
		from, clients string
		want          Memory
	}{
		{"", "", m.cfg.Memory},
		{"a:1", "", m.cfg.Memory},
		{"", "b:2", Memory{"a:1", "b:2", mirrored.Zkgo}},
		{"b:1", "", Memory{"b:1", "", mirrored.ZooKeeper}},
		{"b:1", "b:2", Memory{"b:1", "b:2", mirrored.ZooKeeper}},
	} {
		if got, err := recall(dir, c.from, c.clients); err != nil || got != c.want {
			t.Errorf("%+v: %+v %v", c, got, err)
		}
	}
	must.Do(t, os.WriteFile(memoryFile(dir), []byte("{"), 0o600))
	if _, err := recall(dir, "", ""); err == nil || !strings.Contains(err.Error(), memoryFile(dir)) {
		t.Error(err)
	}
}

// serve serves the commands of a server that follows, which includes that it remembers what.
func (m *member) serve() (stop func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
	done := must.Get(m.mirror.Serve(ctx, m.dir, m.Node()))(m.t)
	return func() { cancel(); <-done }
}

// TestLostAfterRestart: a standby that is started again after its primary is gone knows from its
// own directory which client addresses it must check, and takes over.
func TestLostAfterRestart(t *testing.T) {
	t.Parallel()
	primary := newMember(t, Options{})
	must.Get(primary.client().Create(t.Context(), "/a", []byte("b")))(t)
	standby := newMember(t, Options{From: primary.stream, Clients: primary.ClientAddr()})
	stop := standby.serve()
	standby.follows(primary)
	wait.Eventually(t, "the memory", func() bool {
		b, err := os.ReadFile(memoryFile(standby.dir))
		return err == nil && bytes.Contains(b, []byte(`"source":1`))
	})
	stop()
	standby.stop()
	addr := primary.ClientAddr()
	primary.stop()
	standby.start(Options{DataDir: standby.dir})
	wait.Eventually(t, "it leads", func() bool { return standby.status().Leads && standby.status().Problem != "" })
	var steps []string
	r, err := standby.mirror.Cutover(t.Context(), standby.Node(), CutoverOptions{AcceptLost: true, FenceTimeout: 5 * time.Second}, func(s string) { steps = append(steps, s) })
	if err != nil || !r.Done || !strings.Contains(fmt.Sprint(steps), addr) {
		t.Fatalf("%+v %v %q", r, err, steps)
	}
	<-standby.Ready()
	if data, _, err := standby.client().Get(t.Context(), "/a"); err != nil || string(data) != "b" {
		t.Errorf("%q %v", data, err)
	}
}

// TestMirrorOfMirror: a server may follow one that follows another in turn. It has the same state,
// can't take over while the one between does not, and continues when that one has taken over.
func TestMirrorOfMirror(t *testing.T) {
	t.Parallel()
	for name, disguise := range map[string]bool{"of zkgo": false, "of ZooKeeper": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newMember(t, Options{})
			c := first.client()
			must.Get(c.Create(t.Context(), "/before", []byte("b")))(t)
			stream := first.stream
			if disguise {
				stream = asZooKeeper(t, first.stream)
			}
			second := newMember(t, Options{From: stream, Clients: first.ClientAddr()})
			third := newMember(t, Options{From: second.stream, Clients: second.ClientAddr()})
			second.follows(first)
			third.follows(first)
			changes(t, first, c)
			second.follows(first)
			third.follows(first)
			same(t, third, second)
			if !disguise {
				same(t, third, first)
			}
			if third.status().Compared == 0 || second.mirror.source != map[bool]mirrored.Source{false: mirrored.Zkgo, true: mirrored.ZooKeeper}[disguise] {
				t.Errorf("%+v, the second follows a server of kind %d", third.status(), second.mirror.source)
			}
			none := func(string) {}
			for _, o := range []CutoverOptions{{DryRun: true}, {}, {LastZxid: 5}} {
				if _, err := third.mirror.Cutover(t.Context(), third.Node(), o, none); err == nil || !strings.Contains(err.Error(), "is itself a mirror") {
					t.Errorf("%+v: %v", o, err)
				}
			}
			_ = c.Close()
			first.stop()
			wait.Eventually(t, "the end of the first", func() bool { return !second.status().InSync })
			r, err := second.mirror.Cutover(t.Context(), second.Node(), CutoverOptions{AcceptLost: true, FenceTimeout: 5 * time.Second}, none)
			if err != nil || !r.Done {
				t.Fatalf("%+v %v", r, err)
			}
			<-second.Ready()
			must.Get(second.client().Create(t.Context(), "/after", nil))(t)
			third.follows(second)
			same(t, third, second)
			if r, err := third.mirror.Cutover(t.Context(), third.Node(), CutoverOptions{DryRun: true}, none); err != nil {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// TestLostMirror: a server whose source was a mirror doesn't take over by itself, because that
// one's ensemble may still run, and it remembers that.
func TestLostMirror(t *testing.T) {
	t.Parallel()
	first := newMember(t, Options{})
	second := newMember(t, Options{From: first.stream, Clients: first.ClientAddr()})
	third := newMember(t, Options{From: second.stream, Clients: second.ClientAddr()})
	stop := third.serve()
	third.follows(first)
	wait.Eventually(t, "the memory", func() bool {
		b, err := os.ReadFile(memoryFile(third.dir))
		return err == nil && bytes.Contains(b, []byte(`"source":2`))
	})
	stop()
	third.stop()
	second.stop()
	third.start(Options{DataDir: third.dir})
	third.awaits("it leads", func(s Status) bool { return s.Leads && s.Problem != "" })
	o := CutoverOptions{AcceptLost: true, FenceTimeout: 5 * time.Second}
	r, err := third.mirror.Cutover(t.Context(), third.Node(), o, func(string) {})
	if err == nil || !strings.Contains(fmt.Sprint(r.Findings), "its own ensemble may still serve clients") {
		t.Errorf("%+v %v", r, err)
	}
	o.Force = true
	if r, err = third.mirror.Cutover(t.Context(), third.Node(), o, func(string) {}); err != nil || !r.Done {
		t.Errorf("%+v %v", r, err)
	}
}

// changes changes the state in several ways, and opens and ends sessions.
func changes(t *testing.T, m *member, c *client.Client) {
	t.Helper()
	other := m.client()
	ctx := t.Context()
	must.Get(c.Create(ctx, "/x", []byte("x")))(t)
	for range 3 {
		must.Get(other.Create(ctx, "/x/s-", nil, client.Sequential, client.Ephemeral))(t)
		must.Get(c.Create(ctx, "/x/e-", nil, client.Sequential, client.Ephemeral))(t)
	}
	must.Get(c.Set(ctx, "/before", []byte("new"), -1))(t)
	must.Do(t, other.Close())
}

// asZooKeeper returns the address of a proxy that hides that the server at addr is zkgo.
func asZooKeeper(t *testing.T, addr string) string {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			end := func() { _ = near.Close(); _ = far.Close() }
			work.Go(func() { defer end(); _, _ = io.Copy(far, near) })
			work.Go(func() {
				defer end()
				first := make([]byte, 4<<10)
				n, err := far.Read(first) // LEADERINFO, which waits for an answer
				if err != nil {
					return
				}
				if _, err := near.Write(bytes.Replace(first[:n], []byte("zkgo1"), []byte("other"), 1)); err == nil {
					_, _ = io.Copy(near, far)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	return l.Addr().String()
}

package client_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// timeout is the session timeout that the tests request. With the default tick the
// server grants it.
const timeout = 12 * time.Second

// inFakeTime runs a test with a server in a bubble.
func inFakeTime(t *testing.T, test func(t *testing.T, zs *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		test(t, zktest.Run(t, opts...))
	})
}

// until reads states up to the wanted one and returns them all.
func until(t testing.TB, s *client.StateSubscription, want client.State) (got []client.State) {
	t.Helper()
	for {
		ch, ok := await(t, s.C(), want.String())
		if !ok {
			t.Fatalf("the stream ended after %v without %v", got, want)
		}
		if got = append(got, ch.State); ch.State == want {
			return got
		}
	}
}

func TestPingsKeepTheSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		id := c.Session().ID
		time.Sleep(time.Hour)
		if _, found, err := c.Exists(bounded(t), "/"); !found || err != nil {
			t.Fatalf("after an hour: %v, %v", found, err)
		}
		if c.Session().ID != id || c.Session().Timeout != timeout {
			t.Fatalf("session %+v, it was 0x%x", c.Session(), id)
		}
		want := int(time.Hour / (timeout / 3))
		if pings := zs.Requests(zktest.Match{Op: proto.OpPing}); pings < want-2 || pings > want+2 {
			t.Errorf("%d pings in an hour, want %d", pings, want)
		}
	})
}

func TestLostWhileDisconnected(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		old := c.Session().ID
		_, _, w, err := c.ExistsW(bounded(t), "/a")
		must(t, err)
		time.Sleep(time.Second)
		states := c.Subscribe()
		defer states.Close()
		deadline := c.SessionDeadline()
		accept := zs.RefuseConnections()
		zs.DropConnections()
		waiting := make(chan error, 1)
		go func() {
			_, err := c.Create(context.Background(), "/b", nil)
			waiting <- err
		}()
		until(t, states, client.StateSuspended)
		until(t, states, client.StateLost)
		if late := time.Since(deadline); late != 0 {
			t.Errorf("StateLost came %v after the deadline", late)
		}
		if err, _ := await(t, waiting, "the waiting operation"); !errors.Is(err, client.ErrSessionExpired) || errors.Is(err, client.ErrUnknownOutcome) {
			t.Errorf("the waiting operation: %v", err)
		}
		if _, ok := <-w.Events(); ok || !errors.Is(w.Err(), client.ErrSessionExpired) {
			t.Errorf("the watch ended with %v", w.Err())
		}
		accept()
		until(t, states, client.StateConnected)
		if id := c.Session().ID; id == old || id == 0 {
			t.Errorf("the session is 0x%x", id)
		}
	})
}

func TestSilentServerIsLeft(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		states := c.Subscribe()
		defer states.Close()
		id := c.Session().ID
		heard := time.Now()
		resume := zs.HangConnection(id)
		defer resume()
		until(t, states, client.StateSuspended)
		if after := time.Since(heard); after != timeout*2/3 {
			t.Errorf("the server was left after %v of silence", after)
		}
		until(t, states, client.StateReconnected)
		if c.Session().ID != id {
			t.Error("another session")
		}
	})
}

func TestLeaseEndsBeforeTheSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		id := c.Session().ID
		l, err := c.Lease(bounded(t))
		must(t, err)
		time.Sleep(time.Hour)
		if err := l.Err(); err != nil {
			t.Fatalf("after an hour: %v", err)
		}
		if n := zs.Requests(zktest.Match{Op: proto.OpSync}); n < int(time.Hour/(timeout/3))-2 {
			t.Errorf("the leader was asked %d times", n)
		}
		zs.RefuseConnections()
		resume := zs.HangConnection(id)
		defer resume()
		last := time.Now()
		<-l.Done()
		if after := time.Since(last); after > timeout*2/3 || after < timeout/3 {
			t.Errorf("the lease ended %v after the connection hung", after)
		}
		if !errors.Is(l.Err(), client.ErrSessionExpired) || !l.Deadline().IsZero() {
			t.Errorf("the lease ended with %v, %v", l.Err(), l.Deadline())
		}
		alive := slices.ContainsFunc(zs.Sessions(), func(s zktest.Session) bool { return s.ID == id })
		if !alive {
			t.Error("the session had ended before the lease")
		}
	})
}

func TestLeaseSurvivesAReconnect(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		l, err := c.Lease(bounded(t))
		must(t, err)
		states := c.Subscribe()
		defer states.Close()
		for range 10 {
			zs.DropConnections()
			until(t, states, client.StateReconnected)
			time.Sleep(timeout / 2)
		}
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		l.Release()
		if !errors.Is(l.Err(), context.Canceled) {
			t.Errorf("released: %v", l.Err())
		}
	})
}

func TestLeaseIsNotRenewedByPings(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		l, err := c.Lease(bounded(t))
		must(t, err)
		// A server that has lost its leader answers pings and reads, but not syncs.
		for range 5 {
			zs.FailNext(zktest.Match{Op: proto.OpSync}, proto.ErrNotReadOnly)
		}
		began := time.Now()
		await(t, l.Done(), "the lease's end")
		if after := time.Since(began); after > timeout*2/3 {
			t.Errorf("the lease ended after %v", after)
		}
	})
}

func TestCloseEndsTheSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		_, err := c.Create(ctx, "/e", nil, client.Ephemeral)
		must(t, err)
		w, err := c.WatchPersistent(ctx, "/e")
		must(t, err)
		l, err := c.Lease(ctx)
		must(t, err)
		states := c.Subscribe()
		must(t, c.Close())
		if zs.Exists("/e") || len(zs.Sessions()) != 0 {
			t.Error("the session has not ended")
		}
		for range w.Events() {
		}
		if !errors.Is(w.Err(), client.ErrClosed) || !errors.Is(l.Err(), client.ErrClosed) {
			t.Errorf("watch %v, lease %v", w.Err(), l.Err())
		}
		until(t, states, client.StateClosed)
		if _, ok := <-states.C(); ok {
			t.Error("the states continue")
		}
		if _, _, err := c.Get(ctx, "/"); !errors.Is(err, client.ErrClosed) {
			t.Errorf("get: %v", err)
		}
		must(t, c.Close())
	})
}

func TestCloseDoesNotWaitForever(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		defer zs.HangConnection(c.Session().ID)()
		began := time.Now()
		if err := c.Close(); err == nil {
			t.Error("no server answered, but Close returned no error")
		}
		if took := time.Since(began); took > timeout/3 {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestResume(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		ctx := bounded(t)
		// Two clients with the same session disconnect each other, so one should stay
		// disconnected.
		var away atomic.Bool
		first, err := client.Connect(ctx, "zk", client.WithSessionTimeout(timeout),
			client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
				if away.Load() {
					return nil, net.ErrClosed
				}
				return zs.Dial()
			}))
		must(t, err)
		defer first.Close()
		_, err = first.Create(ctx, "/e", nil, client.Ephemeral)
		must(t, err)
		s := first.Session()
		away.Store(true)
		second := connect(t, zs, client.WithSession(s), client.WithSessionTimeout(timeout))
		if second.Session().ID != s.ID {
			t.Fatalf("session 0x%x, want 0x%x", second.Session().ID, s.ID)
		}
		must(t, second.Close())
		if zs.Exists("/e") {
			t.Error("it was another session")
		}
		states := first.Subscribe()
		defer states.Close()
		away.Store(false)
		until(t, states, client.StateLost)

		_, err = client.Connect(ctx, "zk", dialer(zs), client.WithSession(s))
		if !errors.Is(err, client.ErrSessionExpired) {
			t.Errorf("resumed an ended session: %v", err)
		}
	})
}

// TestExpiryIsReportedWhileServerIsSilent tests that we treat a silent server like an
// unreachable one: the client should report the end of the session in time.
func TestExpiryIsReportedWhileServerIsSilent(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		states := c.Subscribe()
		defer states.Close()
		deadline := c.SessionDeadline()
		accept := zs.RefuseConnections()
		defer accept()
		zs.HangConnection(c.Session().ID)
		until(t, states, client.StateSuspended)
		until(t, states, client.StateLost)
		if late := time.Since(deadline); late < 0 || late > timeout {
			t.Errorf("StateLost came %v after the deadline", late)
		}
	})
}

func TestWithoutNewSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithoutNewSession())
		states := c.Subscribe()
		defer states.Close()
		zs.ExpireSession(c.Session().ID)
		until(t, states, client.StateLost)
		time.Sleep(time.Hour)
		if _, _, err := c.Get(bounded(t), "/"); !errors.Is(err, client.ErrSessionExpired) {
			t.Errorf("get: %v", err)
		}
		if n := len(zs.Sessions()); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

func TestEverySubscriptionSeesTheLoss(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		idle, watcher := c.Subscribe(), c.Subscribe()
		defer idle.Close()
		defer watcher.Close()
		zs.ExpireSession(c.Session().ID)
		until(t, watcher, client.StateLost)
		until(t, watcher, client.StateConnected)
		for range 200 {
			zs.DropConnections()
			until(t, watcher, client.StateReconnected)
		}
		n := 0
		for len(idle.C()) > 0 {
			if s := <-idle.C(); s.State == client.StateLost {
				n++
			}
		}
		if n != 1 {
			t.Errorf("an idle subscriber saw %d losses", n)
		}
		zs.DropConnections()
		until(t, idle, client.StateReconnected)
	})
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testReadOnly)
}

func testReadOnly(t *testing.T) {
	cl := zktest.RunCluster(t, 3, zktest.WithConfig(func(c *server.Config) { c.ReadOnlyMode = true }))
	ctx := bounded(t)
	cl.Leader().Set("/a", "1")
	for _, s := range cl.Servers() {
		s.WaitExists("/a")
	}
	alone := cl.Follower()
	cl.Partition([]int{alone.ID()})
	// The server needs some time to notice that it has no quorum.
	c, err := client.Connect(ctx, "alone", dialer(alone), client.WithReadOnly())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	states := c.Subscribe()
	defer states.Close()
	until(t, states, client.StateReadOnly)
	if data, _, err := c.Get(ctx, "/a"); err != nil || string(data) != "1" {
		t.Fatalf("get: %q, %v", data, err)
	}
	if _, err := c.Create(ctx, "/b", nil); !errors.Is(err, client.ErrNotReadOnly) {
		t.Fatalf("create: %v", err)
	}
	if _, _, err := c.Get(ctx, "/a", client.Linearizable); !errors.Is(err, client.ErrNotReadOnly) {
		t.Fatalf("a linearizable read without a quorum: %v", err)
	}
	cl.Heal()
	until(t, states, client.StateConnected)
	_, err = c.Create(ctx, "/b", nil)
	must(t, err)
}

// AwaitSession should wait until a session begins or none can begin.
func TestAwaitSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(timeout))
		first := c.Session()
		if s, err := c.AwaitSession(bounded(t)); err != nil || s.ID != first.ID || s.Timeout != timeout {
			t.Errorf("%+v, %v", s, err)
		}
		accept := zs.RefuseConnections()
		zs.ExpireSession(first.ID)
		time.Sleep(2 * timeout)
		ctx, cancel := withTimeout(t, time.Second)
		defer cancel()
		if _, err := c.AwaitSession(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a session: %v", err)
		}
		if _, err := c.InSession(first.ID).AwaitSession(bounded(t)); !errors.Is(err, client.ErrSessionExpired) {
			t.Errorf("a view of the lost session: %v", err)
		}
		got := make(chan client.Session, 1)
		go func() {
			s, err := c.AwaitSession(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
		synctest.Wait()
		accept()
		s := <-got
		if s.ID == 0 || s.ID == first.ID {
			t.Errorf("session %+v after 0x%x", s, first.ID)
		}
		must(t, c.Close())
		if _, err := c.AwaitSession(context.Background()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

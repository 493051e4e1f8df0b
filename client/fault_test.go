package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestOutcomeOfACancelledWrite(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		f := zs.DelayNext(zktest.Match{Op: proto.OpCreate}, time.Second)
		ctx, cancel := context.WithCancelCause(bounded(t))
		why := errors.New("the user has left")
		go func() {
			f.Wait()
			cancel(why)
		}()
		_, err := c.Create(ctx, "/a", nil)
		if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, why) {
			t.Errorf("cancelled after sending: %v", err)
		}
		if _, err = c.Create(ctx, "/b", nil); errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, why) {
			t.Errorf("cancelled before: %v", err)
		}
		if _, _, err = c.Get(ctx, "/b"); errors.Is(err, client.ErrUnknownOutcome) {
			t.Errorf("a read has an unknown outcome: %v", err)
		}
		zs.WaitExists("/a")
		if text := err.Error(); !strings.Contains(text, "getData /b") {
			t.Errorf("the error names neither operation nor path: %q", text)
		}
	})
}

func TestUnsentRequestHasNoUnknownOutcome(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithSessionTimeout(40*time.Second))
		states := c.Subscribe()
		defer states.Close()
		accept := zs.RefuseConnections()
		zs.DropConnections()
		until(t, states, client.StateSuspended)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Create(ctx, "/a", nil)
		if errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("create: %v", err)
		}
		if !strings.Contains(err.Error(), "refused") {
			t.Errorf("the error does not say why there is no connection: %v", err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Create(t.Context(), "/b", nil)
			done <- err
		}()
		time.Sleep(time.Second)
		accept()
		if err := <-done; err != nil {
			t.Errorf("the waiting request: %v", err)
		}
		if zs.Exists("/a") {
			t.Error("the abandoned request was sent")
		}
	})
}

func TestReadsAreRetried(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		zs.Set("/a", "1")
		c := connect(t, zs)
		for range 3 {
			zs.LoseNext(zktest.Match{Op: proto.OpGetData})
		}
		_, _, err := c.Retrying(client.NoRetry()).Get(bounded(t), "/a")
		if !errors.Is(err, client.ErrConnectionLoss) || errors.Is(err, client.ErrUnknownOutcome) {
			t.Fatalf("without retry: %v", err)
		}
		if _, _, err = c.Get(bounded(t), "/a"); err != nil {
			t.Fatal(err)
		}
		if n := zs.Requests(zktest.Match{Op: proto.OpGetData, Path: "/a"}); n != 4 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy client.RetryPolicy
		tries  int // expected tries if each of up to 20 fails, one per second
	}{
		"never":       {client.NoRetry(), 1},
		"n":           {client.RetryN(3, time.Second), 3},
		"forever":     {client.RetryForever(0), 20},
		"exponential": {client.RetryExponential(time.Millisecond, time.Second, 7), 7},
		"elapsed":     {client.RetryUntilElapsed(5500*time.Millisecond, time.Millisecond), 6},
	} {
		tries := 0
		for again := true; again && tries < 20; {
			tries++
			var wait time.Duration
			wait, again = c.policy.Retry(tries, time.Duration(tries)*time.Second)
			if wait > time.Second || wait < 0 {
				t.Errorf("%s: a wait of %v", name, wait)
			}
		}
		if tries != c.tries {
			t.Errorf("%s: %d tries, want %d", name, tries, c.tries)
		}
	}
}

func TestWritesAreNotRepeated(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		zs.Set("/a", "1")
		zs.LoseReply(zktest.Match{Op: proto.OpSetData})
		_, err := c.Set(bounded(t), "/a", []byte("2"), client.AnyVersion)
		if !errors.Is(err, client.ErrUnknownOutcome) {
			t.Fatalf("set: %v", err)
		}
		if n := zs.Requests(zktest.Match{Op: proto.OpSetData}); n != 1 {
			t.Errorf("%d requests", n)
		}
		zs.LoseReply(zktest.Match{Op: proto.OpSetData})
		stat, err := c.Set(bounded(t), "/a", []byte("3"), client.AnyVersion, client.Idempotent)
		if err != nil || zs.Get("/a") != "3" || stat.Version < 3 {
			t.Errorf("idempotent set: %+v, %v", stat, err)
		}
		zs.LoseReply(zktest.Match{Op: proto.OpDelete})
		if err := c.Delete(bounded(t), "/a", client.AnyVersion, client.Idempotent); err != nil {
			t.Errorf("idempotent delete: %v", err)
		}
		if err := c.Delete(bounded(t), "/a", client.AnyVersion, client.Idempotent); !errors.Is(err, client.ErrNoNode) {
			t.Errorf("delete of a missing znode: %v", err)
		}
	})
}

func TestGuaranteedDelete(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		zs.Set("/a", "1")
		for range 3 {
			zs.LoseNext(zktest.Match{Op: proto.OpDelete})
		}
		if err := c.Delete(bounded(t), "/a", client.AnyVersion, client.Guaranteed); !errors.Is(err, client.ErrConnectionLoss) {
			t.Fatalf("delete: %v", err)
		}
		zs.WaitGone("/a")

		zs.Set("/b", "1")
		ctx, cancel := context.WithCancel(bounded(t))
		cancel()
		if err := c.Delete(ctx, "/b", client.AnyVersion, client.Guaranteed); !errors.Is(err, context.Canceled) {
			t.Fatalf("delete: %v", err)
		}
		zs.WaitGone("/b")
	})
}

func TestProtectedCreate(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		zs.Set("/locks", "")
		create := func(ctx context.Context) (string, error) {
			return c.Create(ctx, "/locks/lock-", nil, client.Protected, client.Ephemeral, client.Sequential)
		}
		check := func(what, path string, err error) {
			t.Helper()
			must(t, err)
			if names := zs.Children("/locks"); len(names) != 1 || "/locks/"+names[0] != path {
				t.Fatalf("%s: created %q, there are %q", what, path, names)
			}
			must(t, c.Delete(ctx, path, client.AnyVersion))
		}
		path, err := create(ctx)
		if !strings.HasPrefix(path, "/locks/_c_") || len(path) != len("/locks/_c_")+36+len("-lock-0000000000") {
			t.Errorf("the name is not Curator's: %q", path)
		}
		check("undisturbed", path, err)
		zs.LoseReply(zktest.Match{Op: proto.OpCreate})
		path, err = create(ctx)
		check("reply lost", path, err)
		zs.LoseNext(zktest.Match{Op: proto.OpCreate})
		path, err = create(ctx)
		check("request lost", path, err)
		zs.LoseReply(zktest.Match{Op: proto.OpCreate})
		zs.LoseNext(zktest.Match{Op: proto.OpSync})
		zs.LoseNext(zktest.Match{Op: proto.OpGetChildren})
		path, err = create(ctx)
		check("reply and the search lost", path, err)

		// No znode remains after the caller gives up.
		f := zs.DelayNext(zktest.Match{Op: proto.OpCreate}, time.Second)
		cancelled, cancel := context.WithCancel(ctx)
		go func() {
			f.Wait()
			cancel()
		}()
		if _, err = create(cancelled); !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled: %v", err)
		}
		time.Sleep(time.Minute)
		if names := zs.Children("/locks"); len(names) != 0 {
			t.Errorf("left behind: %q", names)
		}
		if n := zs.Requests(zktest.Match{Op: proto.OpDelete, Path: "/locks/*"}); n != 5 {
			t.Errorf("%d deletes", n)
		}
	})
}

func TestProtectedCreateOfALostSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		zs.Set("/locks", "")
		f := zs.LoseReply(zktest.Match{Op: proto.OpCreate})
		accept := zs.RefuseConnections()
		id := c.Session().ID
		go func() {
			f.Wait()
			zs.WaitConnected(id, false)
			zs.ExpireSession(id)
			accept()
		}()
		_, err := c.Create(bounded(t), "/locks/lock-", nil, client.Protected, client.Ephemeral, client.Sequential)
		if err == nil {
			t.Fatal("the create succeeded in another session")
		}
		time.Sleep(time.Minute)
		if names := zs.Children("/locks"); len(names) != 0 {
			t.Errorf("left behind: %q", names)
		}
	})
}

func TestPipelining(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	ctx := bounded(t)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			name := "/" + strings.Repeat("x", i+1)
			if _, err := c.Create(ctx, name, []byte(name)); err != nil {
				t.Errorf("create: %v", err)
			}
			for range 20 {
				data, _, err := c.Get(ctx, name)
				if err != nil || string(data) != name {
					t.Errorf("get %s: %q, %v", name, data, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestStormOfFaults tests that every caller gets the reply to its own request, whatever
// faults occur.
func TestStormOfFaults(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithRetry(client.RetryForever(time.Millisecond)))
		var wg sync.WaitGroup
		for i := range 20 {
			name := "/n" + string(rune('a'+i))
			zs.Set(name, name)
			wg.Go(func() {
				for range 200 {
					data, _, err := c.Get(t.Context(), name)
					if err != nil || string(data) != name {
						t.Errorf("get %s: %q, %v", name, data, err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for range 50 {
				time.Sleep(5 * time.Millisecond)
				zs.DropConnections()
			}
		}()
		wg.Wait()
		<-stop
	})
}

func TestLimits(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		id := c.Session().ID
		_, err := c.Create(ctx, "/a", make([]byte, client.DefaultMaxRequest))
		if !errors.Is(err, client.ErrBadArguments) || errors.Is(err, client.ErrUnknownOutcome) {
			t.Errorf("too long a request: %v", err)
		}
		_, err = c.Create(ctx, "/a", make([]byte, client.DefaultMaxRequest-100))
		must(t, err)
		small := connect(t, zs, client.WithMaxReply(1000))
		if _, _, err := small.Get(ctx, "/a"); !errors.Is(err, client.ErrConnectionLoss) || !errors.Is(err, client.ErrProtocol) {
			t.Errorf("too long a reply: %v", err)
		}
		for _, path := range []string{"", "a", "/a/", "/a//b", "/a/../b", "/\x00"} {
			if _, _, err := c.Get(ctx, path); !errors.Is(err, client.ErrBadArguments) {
				t.Errorf("path %q: %v", path, err)
			}
		}
		if c.Session().ID != id || zs.Requests(zktest.Match{Op: proto.OpGetData, Path: "/a/"}) != 0 {
			t.Error("a request refused by the client was sent")
		}
	})
}

// A delete that the server refused because of overload did not delete the znode, so if the
// znode is missing afterwards, another client deleted it.
func TestThrottledDeleteOfAMissingZnode(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		zs.FailNext(zktest.Match{Op: proto.OpDelete}, proto.ErrThrottledOp)
		if err := c.Delete(bounded(t), "/missing", client.AnyVersion); !errors.Is(err, client.ErrNoNode) {
			t.Errorf("throttled, then missing: %v", err)
		}
		zs.Set("/a", "")
		zs.LoseReply(zktest.Match{Op: proto.OpDelete, Path: "/a"})
		must(t, c.Delete(bounded(t), "/a", client.AnyVersion, client.Idempotent))
	})
}

// If the outcome of one try is unknown, it should stay unknown, whatever the result of a
// later try.
func TestLaterErrorsDoNotHideAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		later proto.Code // the result of every later try
		want  error
	}{
		"throttled":   {proto.ErrThrottledOp, client.ErrConnectionLoss},
		"bad version": {proto.ErrBadVersion, client.ErrBadVersion},
		"no node":     {proto.ErrNoNode, client.ErrNoNode},
		"no auth":     {proto.ErrNoAuth, client.ErrNoAuth},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
				c := connect(t, zs)
				zs.Set("/a", "1")
				set := zktest.Match{Op: proto.OpSetData}
				zs.LoseReply(set)
				defer zs.FailAll(set, tc.later).Cancel()
				_, err := c.Set(bounded(t), "/a", []byte("2"), client.AnyVersion, client.Idempotent)
				if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, tc.want) {
					t.Errorf("done, then %v: %v", tc.later, err)
				}
				if errors.Is(err, client.ErrThrottledOp) {
					t.Errorf("the error says that the write had no effect: %v", err)
				}
			})
		})
	}
	t.Run("the context ends", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
			c := connect(t, zs)
			zs.Set("/a", "1")
			lost := zs.LoseReply(zktest.Match{Op: proto.OpSetData})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go func() {
				lost.Wait()
				zs.RefuseConnections()
			}()
			_, err := c.Set(ctx, "/a", []byte("2"), client.AnyVersion, client.Idempotent)
			if !errors.Is(err, client.ErrUnknownOutcome) {
				t.Errorf("done, then no connection: %v", err)
			}
		})
	})
	t.Run("the session ends", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
			c := connect(t, zs)
			zs.Set("/a", "1")
			zs.LoseReply(zktest.Match{Op: proto.OpSetData})
			zs.FailNext(zktest.Match{Op: proto.OpCreateSession}, proto.ErrSessionExpired)
			_, err := c.InSession(c.Session().ID).Set(bounded(t), "/a", []byte("2"), client.AnyVersion, client.Idempotent)
			if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, client.ErrSessionExpired) {
				t.Errorf("done, then no session: %v", err)
			}
		})
	})
}

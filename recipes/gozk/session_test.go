package gozk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func begin(t *testing.T, p *peer) recipes.Session {
	t.Helper()
	s := must.Get(p.Session(rig.Within(t)))(t)
	return s
}

// Both clients should behave the same.
func TestOperations(t *testing.T) {
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		s := begin(t, open(t, zs))
		for path, mode := range map[string]recipes.Mode{"/p": recipes.Persistent, "/e": recipes.Ephemeral, "/c": recipes.Container} {
			if created, err := s.Create(ctx, path, []byte("1"), mode, nil); err != nil || created != path {
				t.Errorf("create %s: %q, %v", path, created, err)
			}
		}
		for want, mode := range map[string]recipes.Mode{"/p/s-0000000000": recipes.PersistentSequential, "/c/s-0000000000": recipes.EphemeralSequential} {
			created, err := s.Create(ctx, want[:5], nil, mode, client.WorldACL(client.PermAll))
			if err != nil || created != want {
				t.Errorf("create %s: %q, %v", want, created, err)
			}
		}
		data, stat, err := s.Get(ctx, "/e")
		if err != nil || string(data) != "1" || stat.EphemeralOwner != s.ID() {
			t.Errorf("get: %q %+v %v", data, stat, err)
		}
		stat, err = s.Set(ctx, "/p", []byte("2"), 0)
		if err != nil || stat.Version != 1 {
			t.Errorf("set: %+v %v", stat, err)
		}
		if _, there, err := s.Exists(ctx, "/none"); there || err != nil {
			t.Errorf("exists: %v %v", there, err)
		}
		if stat, there, err := s.Exists(ctx, "/p"); !there || err != nil || stat.Version != 1 {
			t.Errorf("exists: %v %+v %v", there, stat, err)
		}
		names, _, err := s.Children(ctx, "/p")
		if err != nil || len(names) != 1 || names[0] != "s-0000000000" {
			t.Errorf("children: %v %v", names, err)
		}
		must.Do(t, s.Multi(ctx,
			recipes.Op{Kind: recipes.OpCheck, Path: "/p", Version: 1},
			recipes.Op{Kind: recipes.OpCreate, Path: "/m", Data: []byte("m"), Mode: recipes.Ephemeral},
			recipes.Op{Kind: recipes.OpSet, Path: "/m", Data: []byte("n"), Version: client.AnyVersion},
			recipes.Op{Kind: recipes.OpDelete, Path: "/p/s-0000000000", Version: 0}))
		if zs.Get("/m") != "n" || zs.Exists("/p/s-0000000000") {
			t.Errorf("after multi:\n%s", zs.Dump())
		}
		must.Do(t, s.Delete(ctx, "/m", client.AnyVersion))
		must.Do(t, s.Sync(ctx, "/"))
	})
}

func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		zs.Set("/a/b", "")
		s := begin(t, open(t, zs))
		set := func(path string, version int32) error { _, err := s.Set(ctx, path, nil, version); return err }
		create := func(path string, acl []client.ACL) error {
			_, err := s.Create(ctx, path, nil, recipes.Ephemeral, acl)
			return err
		}
		must.Do(t, create("/e", nil))
		zs.FailNext(zktest.Match{Path: "/quota"}, client.ErrQuotaExceeded) // go-zookeeper has no value for it
		for _, c := range []struct {
			what string
			err  error
			want client.Code
		}{
			{"no znode", set("/none", -1), client.ErrNoNode},
			{"another version", set("/a", 7), client.ErrBadVersion},
			{"there already", create("/a", nil), client.ErrNodeExists},
			{"children", s.Delete(ctx, "/a", -1), client.ErrNotEmpty},
			{"below an ephemeral", create("/e/x", nil), client.ErrNoChildrenForEphemerals},
			{"acl", create("/x", []client.ACL{{Perms: client.PermAll, ID: client.ID{Scheme: "none"}}}), client.ErrInvalidACL},
			{"quota", create("/quota", nil), client.ErrQuotaExceeded},
			{"path", create("none", nil), client.ErrBadArguments},
			{"multi", s.Multi(ctx, recipes.Op{Kind: recipes.OpCheck, Path: "/none", Version: -1}, recipes.Op{Kind: recipes.OpDelete, Path: "/a/b"}), client.ErrNoNode},
		} {
			if !errors.Is(c.err, c.want) || errors.Is(c.err, client.ErrUnknownOutcome) {
				t.Errorf("%s: %v", c.what, c.err)
			}
		}
	})
}

func TestUnknownOutcomes(t *testing.T) {
	reconnects(t)
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		p := open(t, zs)
		s := begin(t, p)
		for _, lose := range []func(zktest.Match) *zktest.Fault{zs.LoseNext, zs.LoseReply} {
			lose(zktest.Match{Path: "/a"})
			_, err := s.Create(ctx, "/a", nil, recipes.Persistent, nil)
			if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, client.ErrConnectionLoss) {
				t.Errorf("create: %v", err)
			}
			lose(zktest.Match{Path: "/"})
			if _, _, err := s.Children(ctx, "/"); err != nil {
				t.Errorf("a read was not repeated: %v", err)
			}
		}
		zs.DelayNext(zktest.Match{Path: "/b"}, time.Minute/12)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := s.Create(short, "/b", nil, recipes.Persistent, nil)
		if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("create: %v", err)
		}
		time.Sleep(time.Minute)
		zs.ExpireSession(s.ID())
		time.Sleep(time.Minute)
		if err := s.Delete(ctx, "/a", -1); !errors.Is(err, client.ErrSessionExpired) || errors.Is(err, client.ErrUnknownOutcome) {
			t.Errorf("delete in a session that has ended: %v", err)
		}
		if !zs.Exists("/a") || p.session(t) == s.ID() {
			t.Error("it was executed in the next session")
		}
	})
}

// Requests that could not be sent go out in the next session. The znodes that they create
// there should not stay.
func TestNothingIsDoneInTheNextSession(t *testing.T) {
	reconnects(t)
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		p := open(t, zs)
		s := begin(t, p)
		release := p.net.hold()
		const calls = 10
		failed := make(chan error, calls)
		for i := range calls {
			go func() {
				var err error
				if i%2 == 0 {
					_, err = s.Create(ctx, "/e-", []byte("x"), recipes.EphemeralSequential, nil)
				} else {
					err = s.Multi(ctx, recipes.Op{Kind: recipes.OpCreate, Path: "/m-", Mode: recipes.EphemeralSequential})
				}
				failed <- err
			}()
		}
		time.Sleep(time.Minute)
		if len(zs.Sessions()) != 0 {
			t.Fatalf("sessions %v", zs.Sessions())
		}
		release()
		for range calls {
			if err := <-failed; !errors.Is(err, client.ErrUnknownOutcome) {
				t.Errorf("a call in the previous session: %v", err)
			}
		}
		if p.session(t) == s.ID() {
			t.Fatal("the session continues")
		}
		if zs.Stat("/").Cversion <= 1 {
			t.Fatal("no request was sent in the next session: nothing was tested")
		}
		time.Sleep(time.Second)
		if left := zs.Ephemerals(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestWatches(t *testing.T) {
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		zs.Set("/a", "1")
		p := open(t, zs)
		s := begin(t, p)
		_, _, data, err := s.GetW(ctx, "/a")
		must.Do(t, err)
		_, _, kids, err := s.ChildrenW(ctx, "/a")
		must.Do(t, err)
		_, there, none, err := s.ExistsW(ctx, "/b")
		if err != nil || there {
			t.Fatal(there, err)
		}
		if _, _, w, err := s.GetW(ctx, "/none"); !errors.Is(err, client.ErrNoNode) {
			t.Errorf("%v %v", w, err)
		}
		zs.Set("/a", "2")
		zs.Set("/a/x", "")
		zs.Set("/b", "")
		for w, want := range map[recipes.Watch]client.Event{
			data: {Type: client.EventNodeDataChanged, Path: "/a"},
			kids: {Type: client.EventNodeChildrenChanged, Path: "/a"},
			none: {Type: client.EventNodeCreated, Path: "/b"},
		} {
			if e, ok := <-w.Events(); !ok || e.Type != want.Type || e.Path != want.Path {
				t.Errorf("event %+v, not %+v", e, want)
			}
		}
		_, _, w, err := s.GetW(ctx, "/a")
		must.Do(t, err)
		zs.DropConnection(s.ID())
		zs.Set("/a", "3")
		if _, ok := <-w.Events(); !ok {
			t.Error("a watch ended with its connection")
		}
		_, _, w, err = s.GetW(ctx, "/a")
		must.Do(t, err)
		zs.ExpireSession(s.ID())
		if e, ok := <-w.Events(); ok {
			t.Errorf("event %v after the end", e)
		}
	})
}

// A removed watch stays, and should be reused, but never for a state older than the read.
func TestRemovedWatchesAreUsedAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/a", "1")
		s := begin(t, open(t, zs))
		for range 10 {
			_, _, w, err := s.GetW(ctx, "/a")
			must.Do(t, err)
			w.Remove(ctx)
			if _, ok := <-w.Events(); ok {
				t.Error("an event after Remove")
			}
			synctest.Wait()
		}
		if n := len(zs.Watches()); n != 1 {
			t.Errorf("%d watches", n)
		}
		zs.Set("/a", "2") // the spare watch fires
		_, _, w, err := s.GetW(ctx, "/a")
		must.Do(t, err)
		synctest.Wait()
		select {
		case e := <-w.Events():
			t.Errorf("an event from before: %v", e)
		default:
		}
		zs.Set("/a", "3")
		if _, ok := <-w.Events(); !ok {
			t.Error("no event")
		}
	})
}

func TestClose(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		p := open(t, zs)
		s := begin(t, p)
		h := must.Get(s.Hold(ctx, recipes.LostBeforeExpiry))(t)
		_, _, w, err := s.ChildrenW(ctx, "/")
		must.Do(t, err)
		p.zk.Close()
		<-h.Done()
		if !errors.Is(h.Err(), client.ErrClosed) {
			t.Errorf("hold: %v", h.Err())
		}
		if _, ok := <-w.Events(); ok {
			t.Error("an event after Close")
		}
		if _, _, err := s.Get(ctx, "/"); !errors.Is(err, client.ErrClosed) {
			t.Errorf("get: %v", err)
		}
		if _, err := p.Session(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("session: %v", err)
		}
	})
}

// If the server refuses an operation because of overload, the operation has no effect, and
// we should try it again.
func TestThrottled(t *testing.T) {
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		s := begin(t, open(t, zs))
		throttle := func(op proto.Op) { zs.FailNext(zktest.Match{Op: op, Session: s.ID()}, proto.ErrThrottledOp) }
		throttle(proto.OpCreate)
		_, err := s.Create(ctx, "/a", nil, recipes.Ephemeral, nil)
		must.Do(t, err)
		throttle(proto.OpSetData)
		_, err = s.Set(ctx, "/a", []byte("1"), 0)
		must.Do(t, err)
		throttle(proto.OpGetData)
		_, _, err = s.Get(ctx, "/a")
		must.Do(t, err)
		throttle(proto.OpMulti)
		must.Do(t, s.Multi(ctx, recipes.Op{Kind: recipes.OpSet, Path: "/a", Version: 1}))
		throttle(proto.OpDelete)
		must.Do(t, s.Delete(ctx, "/a", 2))
		throttle(proto.OpDelete)
		if err := s.Delete(ctx, "/a", 2); !errors.Is(err, client.ErrNoNode) {
			t.Errorf("a missing znode: %v", err)
		}
	})
}

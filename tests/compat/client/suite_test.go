package client

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestSuite runs all tests against one server of each kind. We run them sequentially,
// because each ZooKeeper costs a JVM.
func TestSuite(t *testing.T) {
	forEach(t, func(t *testing.T, addr string) {
		for name, test := range map[string]func(*testing.T, string){
			"operations":    operations,
			"transactions":  transactions,
			"kinds":         kinds,
			"watches":       watches,
			"removal":       removal,
			"reconnect":     reconnect,
			"lostReply":     lostReply,
			"protected":     protected,
			"expiry":        expiry,
			"lostInTheDark": lostInTheDark,
			"lease":         lease,
			"resume":        resume,
			"auth":          auth,
			"gozk":          gozkLocks,
		} {
			t.Run(name, func(t *testing.T) { test(t, addr) })
		}
	})
}

func operations(t *testing.T, addr string) {
	c, _ := connect(t, addr+"/operations")
	ctx := bounded(t)
	path, stat, err := c.CreateStat(ctx, "/a", []byte("1"), client.CreateParents)
	must.Do(t, err)
	if path != "/a" || stat.DataLength != 1 {
		t.Errorf("created %q %+v", path, stat)
	}
	stat = must.Get(c.Set(ctx, "/a", nil, 0))(t)
	data, again, err := c.Get(ctx, "/a", client.Linearizable)
	must.Do(t, err)
	if data != nil || again != stat {
		t.Errorf("got %q %+v, set %+v", data, again, stat)
	}
	if _, err := c.Set(ctx, "/a", nil, 7); !errors.Is(err, client.ErrBadVersion) {
		t.Errorf("bad version: %v", err)
	}
	eph := must.Get(c.Create(ctx, "/a/e-", []byte{}, client.Ephemeral, client.Sequential))(t)
	names, stat, err := c.Children(ctx, "/a")
	must.Do(t, err)
	if len(names) != 1 || "/a/"+names[0] != eph || stat.NumChildren != 1 {
		t.Errorf("children %q %+v", names, stat)
	}
	if n, err := c.ChildrenCount(ctx, "/"); !old(t, err) && (n != 2 || err != nil) {
		t.Errorf("count %d, %v", n, err)
	}
	if list, err := c.Ephemerals(ctx, "/a"); !old(t, err) && (!slices.Equal(list, []string{eph}) || err != nil) {
		t.Errorf("ephemerals %q, %v", list, err)
	}
	if _, found, err := c.Exists(ctx, "/none"); found || err != nil {
		t.Errorf("exists: %v, %v", found, err)
	}
	if _, _, err := c.Get(ctx, "/none"); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("get: %v", err)
	}
	if _, err := c.Create(ctx, eph+"/x", nil); !errors.Is(err, client.ErrNoChildrenForEphemerals) {
		t.Errorf("child of an ephemeral: %v", err)
	}
	if ids, err := c.WhoAmI(ctx); !old(t, err) && (err != nil || len(ids) == 0 || ids[0].Scheme != "ip") {
		t.Errorf("who am I: %v, %v", ids, err)
	}
	if cfg, err := c.Config(ctx); err != nil {
		t.Errorf("config %+v, %v", cfg, err)
	}
	must.Do(t, c.Sync(ctx, "/"))
	must.Do(t, c.DeleteAll(ctx, "/a"))
	if err := c.Delete(ctx, "/a", client.AnyVersion); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("delete: %v", err)
	}
}

func transactions(t *testing.T, addr string) {
	c, _ := connect(t, addr+"/transactions")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/"))
	r := must.Get(c.Txn().Create("/a", []byte("1")).Create("/b-", nil, client.Sequential, client.Ephemeral).Check("/a", 0).
		Set("/a", []byte("2"), 0).Create("/c", nil, client.Container).Delete("/c", 0).Commit(ctx))(t)
	if r[0].Path != "/a" || r[1].Path != "/b-0000000001" || r[1].Stat != (client.Stat{}) && r[1].Stat.EphemeralOwner != c.Session().ID || r[3].Stat.Version != 1 {
		t.Errorf("results %+v", r)
	}
	_, err := c.Multi(ctx, client.DeleteOp("/a", 1), client.CheckOp("/a", 1))
	var failed *client.MultiError
	if !errors.As(err, &failed) || failed.Index != 1 || !errors.Is(err, client.ErrNoNode) {
		t.Errorf("failing: %v", err)
	}
	reads, err := c.MultiRead(ctx, client.GetOp("/a"), client.GetOp("/x"), client.ChildrenOp("/"))
	if old(t, err) {
		return
	}
	must.Do(t, err)
	if string(reads[0].Data) != "2" || !errors.Is(reads[1].Err, client.ErrNoNode) || len(reads[2].Children) != 2 {
		t.Errorf("reads %+v", reads)
	}
}

func kinds(t *testing.T, addr string) {
	c, _ := connect(t, addr+"/kinds")
	ctx := bounded(t)
	for _, opts := range [][]client.CreateOption{
		{client.CreateParentContainers}, {client.Ephemeral}, {client.Sequential}, {client.Ephemeral, client.Sequential},
		{client.Container}, {client.WithTTL(time.Hour)}, {client.WithTTL(time.Hour), client.Sequential}, {client.Protected},
	} {
		path, stat, err := c.CreateStat(ctx, "/k", nil, opts...)
		if err != nil {
			t.Errorf("%v: %v", opts, err)
			continue
		}
		ephemeral := slices.Contains(opts, client.CreateOption(client.Ephemeral))
		if ephemeral != (stat.EphemeralOwner == c.Session().ID) {
			t.Errorf("%v: owner 0x%x", opts, stat.EphemeralOwner)
		}
		must.Do(t, c.Delete(ctx, path, 0))
	}
}

func watches(t *testing.T, addr string) {
	c, _ := connect(t, addr+"/watches")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/a"))
	_, _, data, err := c.GetW(ctx, "/a")
	must.Do(t, err)
	_, _, child, err := c.ChildrenW(ctx, "/a")
	must.Do(t, err)
	_, _, none, err := c.ExistsW(ctx, "/a/b")
	must.Do(t, err)
	rec, err := c.WatchRecursive(ctx, "/")
	if old(t, err) {
		return
	}
	must.Do(t, err)
	per := must.Get(c.WatchPersistent(ctx, "/a"))(t)
	must.Get(c.Create(ctx, "/a/b", nil))(t)
	must.Get(c.Set(ctx, "/a", nil, client.AnyVersion))(t)
	must.Do(t, c.DeleteAll(ctx, "/a"))
	expect(t, none, client.EventNodeCreated, "/a/b")
	expect(t, child, client.EventNodeChildrenChanged, "/a")
	expect(t, data, client.EventNodeDataChanged, "/a")
	for _, e := range []client.Event{
		{Type: client.EventNodeCreated, Path: "/a/b"}, {Type: client.EventNodeDataChanged, Path: "/a"},
		{Type: client.EventNodeDeleted, Path: "/a/b"}, {Type: client.EventNodeDeleted, Path: "/a"},
	} {
		expect(t, rec, e.Type, e.Path)
	}
	for _, e := range []client.EventType{
		client.EventNodeChildrenChanged, client.EventNodeDataChanged, client.EventNodeChildrenChanged, client.EventNodeDeleted,
	} {
		expect(t, per, e, "/a")
	}
}

func removal(t *testing.T, addr string) {
	c, _ := connect(t, addr+"/removal")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/a"))
	var all []*client.Watch
	_, _, w, err := c.GetW(ctx, "/a")
	must.Do(t, err)
	all = append(all, w)
	_, _, w, err = c.ChildrenW(ctx, "/a")
	must.Do(t, err)
	all = append(all, w)
	_, _, w, err = c.GetW(ctx, "/a")
	must.Do(t, err)
	all = append(all, w)
	for _, set := range []func() (*client.Watch, error){
		func() (*client.Watch, error) { return c.WatchPersistent(ctx, "/a") },
		func() (*client.Watch, error) { return c.WatchRecursive(ctx, "/a") },
	} {
		w, err := set()
		if old(t, err) {
			continue
		}
		must.Do(t, err)
		all = append(all, w)
	}
	// A server before 3.9 can't check a persistent watch.
	there := func(w *client.Watch) bool {
		ok, err := w.Check(ctx)
		return ok && err == nil || os.Getenv("ZKGO_CLIENT_ADDR") != "" && errors.Is(err, client.ErrMarshalling)
	}
	for i, w := range all {
		if !there(w) {
			t.Errorf("watch %d is not at the server", i)
		}
	}
	for i, w := range all {
		must.Do(t, w.Remove(ctx))
		for j, other := range all[i+1:] {
			if !there(other) {
				t.Errorf("with watch %d went %d", i, i+1+j)
			}
		}
	}
	// A watch left at the server would count as the new one.
	_, _, w, err = c.ExistsW(ctx, "/a/none")
	must.Do(t, err)
	must.Do(t, w.Remove(ctx))
}

func reconnect(t *testing.T, addr string) {
	c, w := connect(t, addr+"/reconnect")
	other, _ := connect(t, addr+"/reconnect")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/changed"))
	must.Do(t, c.EnsurePath(ctx, "/same"))
	id := c.Session().ID
	must.Get(c.Create(ctx, "/e", nil, client.Ephemeral))(t)
	_, _, changed, err := c.GetW(ctx, "/changed")
	must.Do(t, err)
	_, _, same, err := c.GetW(ctx, "/same")
	must.Do(t, err)
	_, _, created, err := c.ExistsW(ctx, "/created")
	must.Do(t, err)
	rec, err := c.WatchRecursive(ctx, "/same")
	persistent := !old(t, err)
	if persistent {
		must.Do(t, err)
	}
	states := c.Subscribe()
	defer states.Close()
	w.refuse(true)
	w.cut()
	until(t, states, client.StateSuspended)
	must.Get(other.Set(ctx, "/changed", nil, client.AnyVersion))(t)
	must.Get(other.Create(ctx, "/created", nil))(t)
	w.refuse(false)
	until(t, states, client.StateReconnected)
	expect(t, changed, client.EventNodeDataChanged, "/changed")
	expect(t, created, client.EventNodeCreated, "/created")
	if persistent {
		expect(t, rec, client.EventResync, "/same")
	}
	must.Do(t, c.Sync(ctx, "/"))
	if len(same.Events()) != 0 {
		t.Error("an event for what did not happen")
	}
	must.Get(other.Set(ctx, "/same", nil, client.AnyVersion))(t)
	expect(t, same, client.EventNodeDataChanged, "/same")
	if persistent {
		expect(t, rec, client.EventNodeDataChanged, "/same")
	}
	if stat, found, err := c.Exists(ctx, "/e"); !found || err != nil || stat.EphemeralOwner != id || c.Session().ID != id {
		t.Errorf("the session did not go on: %+v, %v", stat, err)
	}
}

// whenSent lets a write reach the server, but keeps the reply from the client.
func whenSent(t *testing.T, addr, path string, w *wire, write func() error) error {
	t.Helper()
	other, _ := connect(t, addr)
	ctx := bounded(t)
	_, _, seen, err := other.ChildrenW(ctx, path)
	must.Do(t, err)
	w.deafen()
	done := make(chan error, 1)
	go func() { done <- write() }()
	expect(t, seen, client.EventNodeChildrenChanged, path)
	w.cut()
	return <-done
}

func lostReply(t *testing.T, addr string) {
	c, w := connect(t, addr+"/lost")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/"))
	err := whenSent(t, addr, "/lost", w, func() error {
		_, err := c.Create(ctx, "/a", nil)
		return err
	})
	if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, client.ErrConnectionLoss) {
		t.Errorf("create: %v", err)
	}
	if _, err := c.Create(ctx, "/a", nil); !errors.Is(err, client.ErrNodeExists) {
		t.Errorf("again: %v", err)
	}
}

func protected(t *testing.T, addr string) {
	c, w := connect(t, addr+"/protected")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/"))
	var path string
	must.Do(t, whenSent(t, addr, "/protected", w, func() (err error) {
		path, err = c.Create(ctx, "/lock-", nil, client.Protected, client.Ephemeral, client.Sequential)
		return err
	}))
	names, _, err := c.Children(ctx, "/")
	must.Do(t, err)
	if len(names) != 1 || "/"+names[0] != path {
		t.Errorf("created %q, there are %q", path, names)
	}
}

// end ends a session without its client's knowledge.
func end(t *testing.T, addr string, s client.Session) {
	t.Helper()
	thief := must.Get(client.Connect(bounded(t), addr, client.WithSession(s), client.WithSessionTimeout(timeout)))(t)
	must.Do(t, thief.Close())
}

func expiry(t *testing.T, addr string) {
	c, w := connect(t, addr+"/expiry")
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/"))
	must.Get(c.Create(ctx, "/e", nil, client.Ephemeral))(t)
	_, _, watch, err := c.GetW(ctx, "/e")
	must.Do(t, err)
	l := must.Get(c.Lease(ctx))(t)
	states := c.Subscribe()
	defer states.Close()
	old := c.Session()
	w.refuse(true)
	w.cut()
	until(t, states, client.StateSuspended)
	end(t, addr, old)
	w.refuse(false)
	until(t, states, client.StateLost)
	<-l.Done()
	<-watch.Events()
	if !errors.Is(watch.Err(), client.ErrSessionExpired) || !errors.Is(l.Err(), client.ErrSessionExpired) {
		t.Errorf("watch %v, lease %v", watch.Err(), l.Err())
	}
	until(t, states, client.StateConnected)
	if _, found, err := c.Exists(ctx, "/e"); found || err != nil {
		t.Errorf("the ephemeral: %v, %v", found, err)
	}
	if _, err := c.InSession(old.ID).Create(ctx, "/x", nil); !errors.Is(err, client.ErrSessionExpired) {
		t.Errorf("in the old session: %v", err)
	}
}

// lostInTheDark: the client should notice that its session has expired without any server's
// help, and not before the lease has ended.
func lostInTheDark(t *testing.T, addr string) {
	c, w := connect(t, addr, client.WithSessionTimeout(short))
	l := must.Get(c.Lease(bounded(t)))(t)
	states := c.Subscribe()
	defer states.Close()
	w.refuse(true)
	w.cut()
	until(t, states, client.StateLost)
	select {
	case <-l.Done():
	default:
		t.Error("the lease outlives the session")
	}
	w.refuse(false)
	until(t, states, client.StateConnected)
}

func lease(t *testing.T, addr string) {
	c, _ := connect(t, addr, client.WithSessionTimeout(short))
	l := must.Get(c.Lease(bounded(t)))(t)
	first := l.Deadline()
	timer := time.NewTimer(time.Until(first) + time.Second)
	defer timer.Stop()
	select {
	case <-l.Done():
		// On a machine that stalls for seconds, that is correct.
		t.Logf("the lease ended: %v", l.Err())
	case <-timer.C:
		if !l.Deadline().After(first) {
			t.Error("the lease did not move on")
		}
	}
}

func resume(t *testing.T, addr string) {
	c, w := connect(t, addr+"/resume", client.WithoutNewSession())
	ctx := bounded(t)
	must.Do(t, c.EnsurePath(ctx, "/"))
	must.Get(c.Create(ctx, "/e", nil, client.Ephemeral))(t)
	s := c.Session()
	w.refuse(true) // two clients with one session disconnect each other
	w.cut()
	end(t, addr, s)
	w.refuse(false)
	if _, err := client.Connect(ctx, addr, client.WithSession(s)); !errors.Is(err, client.ErrSessionExpired) {
		t.Errorf("resumed what has ended: %v", err)
	}
	states := c.Subscribe()
	defer states.Close()
	until(t, states, client.StateLost)
}

func auth(t *testing.T, addr string) {
	c, w := connect(t, addr+"/auth", client.WithAuth("digest", []byte("ann:secret")))
	ctx := bounded(t)
	must.Get(c.Create(ctx, "/a", nil, client.CreateParents, client.WithACL(client.CreatorACL(client.PermAll)...)))(t)
	other, _ := connect(t, addr+"/auth")
	if _, _, err := other.Get(ctx, "/a"); !errors.Is(err, client.ErrNoAuth) {
		t.Errorf("somebody else: %v", err)
	}
	must.Do(t, other.AddAuth(ctx, "digest", []byte("ann:secret")))
	if _, _, err := other.Get(ctx, "/a"); err != nil {
		t.Errorf("with the password: %v", err)
	}
	w.cut()
	if _, _, err := c.Get(ctx, "/a"); err != nil {
		t.Errorf("after a reconnect: %v", err)
	}
	if err := other.AddAuth(ctx, "nonsense", nil); !errors.Is(err, client.ErrAuthFailed) {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := client.Connect(ctx, addr, client.WithAuth("nonsense", nil)); !errors.Is(err, client.ErrAuthFailed) {
		t.Errorf("nonsense from the start: %v", err)
	}
}

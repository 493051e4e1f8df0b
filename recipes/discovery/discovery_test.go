package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/discovery"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type payload struct {
	Class  string `json:"@class,omitempty"`
	Zone   string `json:"zone"`
	Weight int    `json:"weight"`
}

type register = discovery.Discovery[payload]

func on(t *testing.T, zs *zktest.Server) (*register, *client.Client) {
	c := zs.Client(t)
	return discovery.New[payload](recipes.On(c), "/services"), c
}

// Instances written by Curator 5.9.0 (JsonInstanceSerializer) should decode, and encode
// again byte for byte.
func TestJSONIsCurators(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"name":"web","id":"id-1","address":"10.0.0.7","port":8080,"sslPort":8443,"payload":{"@class":"J$P","zone":"eu","weight":3},"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true},{"value":"/x","variable":false}]}}`,
		`{"name":"web","id":"id-2","address":null,"port":null,"sslPort":null,"payload":null,"registrationTimeUTC":1,"serviceType":"PERMANENT","uriSpec":null,"enabled":false}`,
		`{"name":"web","id":"id-2","address":null,"port":null,"sslPort":null,"payload":null,"registrationTimeUTC":1,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":null}`,
	} {
		var inst discovery.Instance[payload]
		must.Do(t, json.Unmarshal([]byte(text), &inst))
		got := must.Get(inst.MarshalJSON())(t)
		if string(got) != text {
			t.Errorf("written\n%s, not\n%s", got, text)
		}
	}
	text := `{"name":"web","id":"id-3","address":"a","port":1,"sslPort":null,"payload":"text <&> ü","registrationTimeUTC":2,"serviceType":"STATIC","uriSpec":null,"enabled":true}`
	var inst discovery.Instance[string]
	must.Do(t, json.Unmarshal([]byte(text), &inst))
	got := must.Get(inst.MarshalJSON())(t)
	if want := text[:len(text)-len(`,"enabled":true}`)] + "}"; string(got) != want {
		t.Errorf("written\n%s, not\n%s", got, want)
	}
}

func TestURI(t *testing.T) {
	t.Parallel()
	spec := must.Get(discovery.ParseURISpec("{scheme}://{ address }:{port}/{[}{name}{]}?{none}{extra}"))(t)
	i := discovery.Instance[payload]{Name: "web", Address: "h", Port: discovery.Port(80), URI: spec}
	if got := i.BuildURI(map[string]string{"extra": "1"}); got != "http://h:80/{web}?1" {
		t.Errorf("URI %q", got)
	}
	for _, bad := range []string{"{a", "a}", "{a{b}}"} {
		if spec, err := discovery.ParseURISpec(bad); err == nil {
			t.Errorf("%q is read as %v", bad, spec)
		}
	}
}

func TestRegisterWatchUpdateUnregister(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		d, c := on(t, zs)
		seeker, _ := on(t, zs)
		web := seeker.Watch("web")
		must.Do(t, web.Wait(ctx))
		seen := make(chan int, 20)
		go func() {
			for list, err := range web.Changes(ctx) {
				if err != nil {
					break
				}
				seen <- len(list)
			}
			close(seen)
		}()
		r := must.Get(d.Register(discovery.Instance[payload]{Name: "web", Address: "h", Payload: &payload{Zone: "eu"}}))(t)
		must.Do(t, r.Wait(ctx))
		synctest.Wait()
		list := web.Instances()
		if len(list) != 1 || list[0].ID != r.Instance().ID || list[0].Payload.Zone != "eu" || list[0].RegistrationTimeUTC == 0 || len(list[0].ID) != 36 {
			t.Errorf("instances %+v", list)
		}
		inst := r.Instance()
		inst.Disabled = true
		must.Do(t, r.Update(inst))
		zs.ExpireSession(c.Session().ID)
		time.Sleep(time.Minute)
		list = must.Get(seeker.Instances(ctx, "web"))(t)
		if len(list) != 1 || !list[0].Disabled {
			t.Errorf("after the session's end: %+v", list)
		}
		if list = web.Instances(); len(list) != 1 || !list[0].Disabled {
			t.Errorf("the watcher has the old instance: %+v", list)
		}
		zs.Set("/services/web/junk", "no JSON")
		synctest.Wait()
		if bad := web.Bad(); len(bad) != 1 || bad["/services/web/junk"] == nil || len(web.Instances()) != 1 {
			t.Errorf("bad: %v", bad)
		}
		r.Close()
		synctest.Wait()
		names, err := seeker.Names(ctx)
		if err != nil || len(names) != 1 || len(web.Instances()) != 0 {
			t.Errorf("names %v, %v; instances %v", names, err, web.Instances())
		}
		if _, err := seeker.Instance(ctx, "web", inst.ID); !errors.Is(err, discovery.ErrNotFound) {
			t.Errorf("unregistered: %v", err)
		}
		web.Close()
		for range seen {
		}
		synctest.Wait()
		if w := zs.Watches(); len(w) != 0 {
			t.Errorf("watches are left: %v", w)
		}
	})
}

func TestPermanentStaysUntilUnregistered(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		d, _ := on(t, zs)
		for _, kind := range []discovery.Type{discovery.Static, discovery.Permanent} {
			d, c := on(t, zs)
			r := must.Get(d.Register(discovery.Instance[payload]{Name: "db", ID: "1", Type: kind}))(t)
			must.Do(t, r.Wait(rig.Within(t)))
			_ = c.Close()
			if !zs.Exists("/services/db/1") {
				t.Errorf("%s: it disappeared with the session", kind)
			}
			r.Close()
		}
		for _, bad := range []discovery.Instance[payload]{{}, {Name: "a/b"}, {Name: "a", Type: discovery.DynamicSequential}} {
			if _, err := d.Register(bad); !errors.Is(err, discovery.ErrBadInstance) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// Changes should never yield a partial list.
func TestChangesBeginWithAll(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		for _, id := range []string{"a", "b", "c", "d"} {
			zs.Set("/services/web/"+id, `{"name":"web","id":"`+id+`"}`)
		}
		zs.DelayNext(zktest.Match{Op: proto.OpGetData, Path: "/services/web/c"}, time.Second)
		d, _ := on(t, zs)
		web := d.Watch("web")
		defer web.Close()
		for list, err := range web.Changes(rig.Within(t)) {
			if err != nil || len(list) != 4 {
				t.Errorf("first %d instances, %v", len(list), err)
			}
			break
		}
	})
}

// After a restart, a program should replace the instance of its earlier run even if that
// session has not expired yet.
func TestInstanceOfAFormerRunIsReplaced(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		d, c := on(t, zs)
		must.Get(zs.Client(t).Create(rig.Within(t), "/services/web/1", []byte(`{"name":"web","id":"1","address":"old"}`), client.Ephemeral, client.CreateParents))(t)
		r := must.Get(d.Register(discovery.Instance[payload]{Name: "web", ID: "1", Address: "new"}))(t)
		must.Do(t, r.Wait(rig.Within(t)))
		inst, err := d.Instance(rig.Within(t), "web", "1")
		if err != nil || inst.Address != "new" || zs.Ephemerals()["/services/web/1"] != c.Session().ID {
			t.Errorf("%+v, %v", inst, err)
		}
		r.Close()
	})
}

func TestProvider(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		d, _ := on(t, zs)
		web := d.Watch("web")
		defer web.Close()
		provider := func(s discovery.Strategy[payload], filters ...func(discovery.Instance[payload]) bool) *discovery.Provider[payload] {
			return discovery.NewProvider(web, s, filters...)
		}
		round := provider(discovery.RoundRobin[payload]())
		if _, err := round.Get(ctx); !errors.Is(err, discovery.ErrNotFound) {
			t.Errorf("without an instance: %v", err)
		}
		for _, id := range []string{"a", "b", "c", "off"} {
			r := must.Get(d.Register(discovery.Instance[payload]{Name: "web", ID: id, Disabled: id == "off"}))(t)
			defer r.Close()
			must.Do(t, r.Wait(ctx))
		}
		synctest.Wait()
		take := func(p *discovery.Provider[payload], n int) (ids string) {
			for range n {
				i := must.Get(p.Get(ctx))(t)
				ids += i.ID
			}
			return ids
		}
		if got := take(round, 6); got != "abcabc" {
			t.Errorf("round robin %s", got)
		}
		noB := func(i discovery.Instance[payload]) bool { return i.ID != "b" }
		if got := take(provider(discovery.RoundRobin[payload](), noB), 4); got != "acac" {
			t.Errorf("filtered %s", got)
		}
		sticky := provider(discovery.Sticky(discovery.RoundRobin[payload]()))
		if got := take(sticky, 3); got != "aaa" {
			t.Errorf("sticky %s", got)
		}
		a := must.Get(d.Instance(ctx, "web", "a"))(t)
		sticky.NoteError(a)
		if got := take(sticky, 1); got != "a" {
			t.Errorf("down after one error: %s", got)
		}
		sticky.NoteError(a)
		before := take(sticky, 2)
		time.Sleep(31 * time.Second)
		if len(sticky.All()) != 3 || before == "aa" || before[0] != before[1] {
			t.Errorf("after errors %s, then %v", before, sticky.All())
		}
		if got := take(provider(discovery.Random[payload]()), 100); len(got) != 100 {
			t.Errorf("random %s", got)
		}
	})
}

func TestRegisterAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		d := discovery.New[payload](e.Conn, "/services")
		other := must.Get(discovery.New[payload](recipes.On(e.Other), "/services").Register(discovery.Instance[payload]{Name: "web", ID: "0"}))(e.T)
		must.Do(e.T, other.Wait(e.Bounded()))
		r := must.Get(d.Register(discovery.Instance[payload]{Name: "web", ID: "1", Address: "h"}))(e.T)
		if err := r.Wait(e.Ctx); err != nil && !e.Canceled() {
			e.Errorf("wait: %v", err)
		}
		if list, err := d.Instances(e.Ctx, "web"); err != nil && !e.Canceled() || len(list) > 1 && list[0].ID == list[1].ID {
			e.Errorf("instances %v, %v", list, err)
		}
		time.Sleep(time.Minute)
		if owner := e.Server.Ephemerals()["/services/web/1"]; owner != e.Client.Session().ID {
			e.Errorf("it is registered by %#x", owner)
		}
		r.Close()
		other.Close()
		time.Sleep(time.Minute)
		if e.Server.Exists("/services/web/1") {
			e.Error("the instance remains")
		}
		if w := e.Server.Watches(); len(w) != 0 {
			e.Errorf("watches are left: %v", w)
		}
	})
}

// A provider should find registered instances and follow their changes.
func TestProviderAtEveryStep(t *testing.T) {
	t.Parallel()
	var reg *discovery.Registration[payload]
	before := func(e *steps.Env) {
		reg = must.Get(discovery.New[payload](recipes.On(e.Other), "/services").Register(discovery.Instance[payload]{Name: "web", ID: "1", Address: "old"}))(e.T)
		must.Do(e.T, reg.Wait(e.Bounded()))
	}
	steps.Each(t, before, func(e *steps.Env) {
		web := discovery.New[payload](e.Conn, "/services").Watch("web")
		p := discovery.NewProvider(web, discovery.RoundRobin[payload]())
		if inst, err := p.Get(e.Ctx); (err != nil || inst.Address != "old") && !e.Canceled() {
			e.Errorf("get: %+v, %v", inst, err)
		}
		inst := reg.Instance()
		inst.Address = "new"
		must.Do(e.T, reg.Update(inst))
		time.Sleep(time.Minute)
		if inst, err := p.Get(e.Bounded()); err != nil || inst.Address != "new" {
			e.Errorf("after the change: %+v, %v", inst, err)
		}
		reg.Close()
		time.Sleep(time.Minute)
		if inst, err := p.Get(e.Bounded()); !errors.Is(err, discovery.ErrNotFound) {
			e.Errorf("unregistered, but there is %+v, %v", inst, err)
		}
		web.Close()
		time.Sleep(5 * time.Second) // a read in flight may set a watch, which we remove when the reply arrives
		synctest.Wait()
		if w := e.Server.Watches(); len(w) != 0 {
			e.Errorf("watches are left: %v", w)
		}
	})
}

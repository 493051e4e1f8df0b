package takeover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestTakeover: clients that know both sides keep their sessions, locks and watches, and no
// acknowledged write is lost, on the way over and on the way back.
func TestTakeover(t *testing.T) {
	for _, flags := range [][]string{nil, {"--serve"}} {
		t.Run(fmt.Sprint("3 servers", flags), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 3, flags...)
			quiet := dial(t, r.addrs()...)
			must.Get(quiet.Create("/quiet", []byte("mine"), zk.FlagEphemeral, all))(t)
			must.Get(quiet.Create("/watched", nil, 0, all))(t)
			_, _, fired, err := quiet.GetW("/watched")
			must.Do(t, err)
			session := quiet.SessionID()
			l := startLoad(t, r.addrs())
			r.launch()
			l.goesOn()
			if out, err := r.leader().zkgo("cutover", "--dry-run"); err != nil || !strings.Contains(out, "nothing was changed") {
				t.Errorf("%v\n%s", err, out)
			}
			must.Do(t, r.cutover())
			l.goesOn()
			if n := l.expired() + quiet.expired.Load(); n > 0 || quiet.SessionID() != session {
				t.Errorf("%d sessions have expired", n)
			}
			must.Get(l.people[0].Set("/watched", nil, -1))(t)
			if e := <-fired; e.Type != zk.EventNodeDataChanged {
				t.Errorf("%+v", e)
			}
			_, stat, err := quiet.Get("/quiet")
			if err != nil || stat.EphemeralOwner != session {
				t.Errorf("%+v %v", stat, err)
			}
			back(t, r, l)
			_, stat, err = quiet.Get("/quiet")
			if err != nil || stat.EphemeralOwner != session {
				t.Errorf("after the way back: %+v %v", stat, err)
			}
			if n := l.expired() + quiet.expired.Load(); n > 0 {
				t.Errorf("%d sessions have expired on the way back", n)
			}
			var olds []string
			for _, g := range r.gates {
				olds = append(olds, g.addr)
			}
			l.check(olds...)
		})
	}
}

// back gives the state back to an Apache ZooKeeper ensemble, in new directories behind the same
// gates.
func back(t *testing.T, r *rig, l *load) {
	t.Helper()
	for _, s := range r.old {
		s.Stop()
	}
	fresh := must.Get(oracle.Configure(t.TempDir(), 3, "tickTime=1000", "extendedTypesEnabled=true", "maxSessionTimeout=600000"))(t)
	var dirs []string
	for _, s := range fresh {
		dirs = append(dirs, path.Join(s.Dir, "data"))
	}
	out, err := r.new[0].zkgo("rollback", "--write-to", strings.Join(dirs, ","))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range r.new {
		s.kill()
	}
	for i, s := range fresh {
		s.With("-Dzookeeper.digest.enabled=true")
		must.Do(t, s.Launch())
		t.Cleanup(s.Stop)
		r.gates[i].target = s.Addr()
	}
	for i, g := range r.gates {
		must.Do(t, wait.Success(patience, "the ensemble to start", func() error { _, err := fresh[i].Word("srvr"); return err }))
		g.reopen(t, r.fence)
	}
	l.goesOn()
}

// TestSameState: every znode has the same data, stat and access control list after the
// cutover, and every digest on the way has matched, although zkgo is killed and the old leader
// stopped while clients make changes of all kinds.
func TestSameState(t *testing.T) {
	t.Parallel()
	newRig(t, 1).sameState()
}

// sameState writes, takes over and compares.
func (r *rig) sameState() {
	t := r.t
	t.Helper()
	c := dial(t, r.old[0].Addr())
	for _, p := range []string{"/a", "/a/b", "/z"} {
		must.Get(c.Create(p, []byte(p), 0, all))(t)
	}
	r.launch()
	must.Get(c.Create("/a/e", nil, zk.FlagEphemeral, all))(t)
	for range 3 {
		must.Get(c.Create("/a/s-", nil, zk.FlagSequence, all))(t)
	}
	must.Get(c.Set("/a/b", []byte("new"), -1))(t)
	must.Do(t, c.Delete("/z", -1))
	must.Get(c.SetACL("/a/b", []zk.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}, {Perms: 1, Scheme: "ip", ID: "10.0.0.1"}}, -1))(t)
	if !strings.HasPrefix(release(), "3.4.") {
		must.Get(c.CreateContainer("/container", nil, 4, all))(t)
		must.Get(c.CreateTTL("/ttl", nil, zk.FlagTTL, all, 1e12))(t)
	}
	_, err := c.Multi(&zk.CreateRequest{Path: "/m", Acl: all}, &zk.SetDataRequest{Path: "/a", Data: []byte("multi"), Version: -1})
	must.Do(t, err)
	stop := startChanges(t, r)
	goesOn := func() {
		t.Helper()
		from := must.Get(r.new[0].status())(t).Zxid
		wait.Eventually(t, "more transactions", func() bool { st, err := r.new[0].status(); return err == nil && st.InSync && st.Zxid > from+50 })
	}
	for range 2 {
		goesOn()
		r.new[0].kill()
		r.launch()
	}
	goesOn()
	old := r.oldLeader()
	old.Stop()
	r.oldLeader()
	goesOn()
	must.Do(t, old.Run())
	stop()
	must.Get(c.Sync("/"))(t)
	newest := must.Get(process.Ask(r.oldLeader().Addr(), patience))(t).Zxid
	wait.Eventually(t, "the newest transaction", func() bool { st, err := r.new[0].status(); return err == nil && st.Zxid == newest })
	if st := must.Get(r.new[0].status())(t); st.Broken != "" || st.Compared == 0 && !strings.HasPrefix(release(), "3.4") && !strings.HasPrefix(release(), "3.5") {
		t.Errorf("%+v", st)
	}
	want := picture(t, c, "/", nil)
	must.Do(t, r.cutover())
	got := picture(t, dial(t, r.new[0].addr), "/", nil)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// startChanges makes clients of the old servers change znodes in many ways, until the result is
// called. Their sessions live until the end of the test.
func startChanges(t *testing.T, r *rig) (stop func()) {
	t.Helper()
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for w := range 4 {
		c, dice := dial(t, r.old[w%3].Addr(), r.old[(w+1)%3].Addr()), rand.New(rand.NewPCG(uint64(w), 11))
		work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				change(c, dice, fmt.Sprint("/load", w), n)
			}
		})
	}
	return func() { cancel(); work.Wait() }
}

// change makes one change. It may fail: only the ensemble's state counts.
func change(c *person, r *rand.Rand, base string, n int) {
	path := fmt.Sprintf("%s/%d", base, r.IntN(30))
	child := fmt.Sprintf("%s/%d", path, r.IntN(5))
	data := []byte(strings.Repeat("x", r.IntN(2000)))
	switch r.IntN(10) {
	case 0:
		_, _ = c.Create(base, data, 0, all)
	case 1:
		_, _ = c.Create(path, data, 0, all)
	case 2:
		_, _ = c.Create(child, nil, 0, all)
	case 3:
		_, _ = c.Create(child, data, zk.FlagEphemeral, all)
	case 4:
		_, _ = c.Create(path+"/s-", data, zk.FlagSequence, all)
	case 5:
		_, _ = c.Set(path, data, -1)
	case 6:
		_ = c.Delete(child, -1)
	case 7:
		_ = c.Delete(path, -1)
	case 8:
		_, _ = c.SetACL(path, append(zk.WorldACL(zk.PermAll), zk.ACL{Perms: 1, Scheme: "digest", ID: fmt.Sprintf("u%d:x=", n%7)}), -1)
	case 9:
		_, _ = c.Multi(&zk.CreateRequest{Path: child, Data: data, Acl: all}, &zk.SetDataRequest{Path: path, Data: data, Version: -1}, &zk.DeleteRequest{Path: child, Version: -1})
	}
}

// picture lists all znodes except the list of servers.
func picture(t *testing.T, c *person, at string, lines []string) []string {
	t.Helper()
	if at == "/zookeeper/config" || at == "/zookeeper" {
		return lines
	}
	data, stat, err := c.Get(at)
	must.Do(t, err)
	acl, _, err := c.GetACL(at)
	must.Do(t, err)
	lines = append(lines, fmt.Sprintf("%s %q %+v %v", at, data, *stat, acl))
	names, _, err := c.Children(at)
	must.Do(t, err)
	slices.Sort(names)
	for _, name := range names {
		lines = picture(t, c, path.Join(at, name), lines)
	}
	return lines
}

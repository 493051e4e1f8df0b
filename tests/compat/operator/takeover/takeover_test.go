package takeover

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
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
// cutover.
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
	want := picture(t, c, "/", nil)
	must.Do(t, r.cutover())
	got := picture(t, dial(t, r.new[0].addr), "/", nil)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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

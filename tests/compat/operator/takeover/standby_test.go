package takeover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// newStandbyRig starts n zkgo servers behind gates, and configures m others that follow them.
func newStandbyRig(t *testing.T, n, m int) (r *rig, primary []*zkgo) {
	t.Helper()
	r = &rig{t: t, fence: t.TempDir()}
	dir := must.Get(os.MkdirTemp("", "zkgo"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	lines := []string{"tickTime=1000", "syncLimit=5", "extendedTypesEnabled=true", "maxSessionTimeout=600000"}
	configure := func(name string, n int, args ...string) (list []*zkgo) {
		for _, s := range must.Get(oracle.Configure(filepath.Join(dir, name), n, lines...))(t) {
			list = append(list, &zkgo{t: t, addr: s.Addr(), config: filepath.Join(s.Dir, "zoo.cfg"), data: filepath.Join(s.Dir, "data"), dir: s.Dir, args: args})
		}
		return list
	}
	primary = configure("p", n, "server")
	var streams, clients []string
	for i, port := range must.Get(oracle.FreePorts(n))(t) {
		f := must.Get(os.OpenFile(primary[i].config, os.O_APPEND|os.O_WRONLY, 0o600))(t)
		must.Get(fmt.Fprintf(f, "observerMasterPort=%d\n", port))(t)
		must.Do(t, f.Close())
		streams = append(streams, fmt.Sprint("127.0.0.1:", port))
		g := newGate(t, primary[i].addr, r.fence)
		r.gates = append(r.gates, g)
		clients = append(clients, g.addr)
	}
	r.new = configure("s", m, "mirror", "--from", strings.Join(streams, ","), "--clients", strings.Join(clients, ","), "--serve=read-only")
	t.Cleanup(func() {
		for _, s := range slices.Concat(primary, r.new) {
			if s.proc != nil {
				s.kill()
			}
			if t.Failed() {
				b, _ := os.ReadFile(s.log())
				t.Logf("%s:\n%s", s.config, b)
			}
		}
	})
	for _, s := range primary {
		s.launch()
	}
	for _, s := range primary {
		must.Do(t, s.proc.Await(patience, "a server", func() error { _, err := process.Ask(s.addr, patience); return err }))
	}
	return r, primary
}

// caughtUp waits until the standby has the primary's state.
func (r *rig) caughtUp(primary []*zkgo) {
	r.t.Helper()
	zxid := int64(0)
	for _, s := range primary {
		if st, err := process.Ask(s.addr, patience); err == nil {
			zxid = max(zxid, st.Zxid)
		}
	}
	must.Do(r.t, wait.Success(patience, "the standby to catch up", func() error {
		for _, s := range r.new {
			if st, err := s.status(); err != nil || st.Zxid < zxid {
				return fmt.Errorf("%s is at 0x%x, the primary at 0x%x: %+v %w", s.addr, st.Zxid, zxid, st, err)
			}
		}
		return nil
	}))
}

// reads checks that read-only clients of the standby see the primary's znodes and can't write.
func (r *rig) reads(path, want string) {
	r.t.Helper()
	for _, s := range r.new {
		c := must.Get(client.Connect(r.t.Context(), s.addr, client.WithReadOnly()))(r.t)
		data, _, err := c.Get(r.t.Context(), path)
		if err != nil || string(data) != want {
			r.t.Errorf("%s: %q %v", s.addr, data, err)
		}
		if _, err := c.Set(r.t.Context(), path, []byte("other"), -1); !errors.Is(err, client.ErrNotReadOnly) {
			r.t.Errorf("%s takes a write: %v", s.addr, err)
		}
		must.Do(r.t, c.Close())
	}
}

// TestStandby: a standby follows an ensemble of zkgo under load while servers of both sides are
// killed, serves reads, and takes over with all acknowledged writes, sessions and locks.
func TestStandby(t *testing.T) {
	for _, m := range []int{1, 3} {
		t.Run(fmt.Sprint(m, " of 3"), func(t *testing.T) {
			t.Parallel()
			r, primary := newStandbyRig(t, 3, m)
			quiet := dial(t, r.addrs()...)
			must.Get(quiet.Create("/quiet", []byte("mine"), zk.FlagEphemeral, all))(t)
			must.Get(quiet.Create("/watched", nil, 0, all))(t)
			_, _, fired, err := quiet.GetW("/watched")
			must.Do(t, err)
			session := quiet.SessionID()
			l := startLoad(t, r.addrs())
			r.launch()
			l.goesOn()
			r.reads("/quiet", "mine")
			leader := slices.IndexFunc(primary, func(s *zkgo) bool {
				st, err := process.Ask(s.addr, patience)
				return err == nil && st.Mode == "leader"
			})
			primary[leader].kill()
			l.goesOn()
			r.leader().kill()
			for _, s := range r.new {
				if s.proc == nil {
					s.launch()
				}
			}
			primary[leader].launch()
			wait.Eventually(t, "the killed primary to serve", func() bool { _, err := process.Ask(primary[leader].addr, time.Second); return err == nil })
			r.inSync()
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
			if _, stat, err := quiet.Get("/quiet"); err != nil || stat.EphemeralOwner != session {
				t.Errorf("%+v %v", stat, err)
			}
			if out, err := r.leader().zkgo("finalize"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			l.check(r.new[0].addr)
		})
	}
}

// TestLostPrimary: a standby without a primary takes over with its state, if the operator accepts
// the loss, also after a restart that doesn't name the primary.
func TestLostPrimary(t *testing.T) {
	t.Parallel()
	r, primary := newStandbyRig(t, 1, 1)
	c := dial(t, primary[0].addr)
	for _, p := range []string{"/a", "/a/b"} {
		must.Get(c.Create(p, []byte(p), 0, all))(t)
	}
	for range 3 {
		must.Get(c.Create("/a/s-", nil, zk.FlagSequence|zk.FlagEphemeral, all))(t)
	}
	must.Get(c.CreateContainer("/container", nil, 4, all))(t)
	must.Get(c.CreateTTL("/ttl", nil, zk.FlagTTL, all, 1e12))(t)
	r.launch()
	_, err := c.Multi(&zk.CreateRequest{Path: "/m", Acl: all}, &zk.SetDataRequest{Path: "/a", Data: []byte("multi"), Version: -1})
	must.Do(t, err)
	want := picture(t, c, "/", nil)
	r.caughtUp(primary)
	if out, err := r.new[0].zkgo("cutover", "--accept-lost"); err == nil || !strings.Contains(out, "the ensemble is not lost") {
		t.Errorf("%v\n%s", err, out)
	}
	primary[0].kill()
	wait.Eventually(t, "the standby misses its primary", func() bool {
		st, err := r.new[0].status()
		return err == nil && !st.InSync
	})
	r.new[0].kill()
	r.new[0].args = []string{"mirror", "--serve=read-only"}
	r.new[0].launch()
	wait.Eventually(t, "the standby misses its primary", func() bool {
		st, err := r.new[0].status()
		return err == nil && st.Leads && st.Phase == "following" && st.Problem != ""
	})
	r.reads("/a", "multi")
	if out, err := r.new[0].zkgo("cutover"); err == nil || !strings.Contains(out, "--accept-lost") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := r.new[0].zkgo("cutover", "--accept-lost", "--fence-command", "touch "+r.fence+"/{port}")
	if err != nil || !strings.Contains(out, "taken over") || !strings.Contains(out, "are lost") {
		t.Fatalf("%v\n%s", err, out)
	}
	got := picture(t, dial(t, r.new[0].addr), "/", nil)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStandbyRefusesWrites: a standby of zkgo that would pass on writes says what to do instead.
func TestStandbyRefusesWrites(t *testing.T) {
	t.Parallel()
	r, _ := newStandbyRig(t, 1, 1)
	s := r.new[0]
	s.args[len(s.args)-1] = "--serve"
	s.launch()
	wait.Eventually(t, "the reason", func() bool {
		st, err := s.status()
		return err == nil && strings.Contains(st.Problem, "--serve=read-only")
	})
}

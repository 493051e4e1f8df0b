package takeover

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/wait"
	"github.com/zkgo/zkgo/tree"
)

// TestOldReconfig: zkgo follows an ensemble that removes a follower, adds it again, and removes its
// leader.
func TestOldReconfig(t *testing.T) {
	t.Parallel()
	r := newRigIn(t, nil, 1, oracle.Options{Config: []string{"reconfigEnabled=true"}, JVM: []string{"-Dzookeeper.skipACL=yes"}}, "--serve")
	r.launch()
	s := r.new[0]
	l := startLoad(t, r.addrs())
	list := func(addr string) (string, error) {
		c := dial(t, addr)
		defer c.Close()
		b, _, err := c.Get(tree.ConfigPath)
		return string(b), err
	}
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^server\.(\d+)=.*$`).FindAllStringSubmatch(must.Get(list(r.old[0].Addr()))(t), -1) {
		lines[m[1]] = strings.TrimSpace(m[0])
	}
	change := func(joining, leaving []string) {
		t.Helper()
		must.Do(t, wait.Success(patience, fmt.Sprint("reconfig +", joining, " -", leaving), func() error {
			c := dial(t, r.oldLeader().Addr())
			defer c.Close()
			_, err := c.IncrementalReconfig(joining, leaving, -1)
			return err
		}))
		want := must.Get(list(r.oldLeader().Addr()))(t)
		must.Do(t, wait.Success(patience, "the new list at zkgo", func() error {
			if got, err := list(s.addr); err != nil || got != want {
				return fmt.Errorf("%q %w, want %q", got, err, want)
			}
			return nil
		}))
		l.goesOn()
		t.Log(want)
	}
	leader := r.oldLeader()
	for _, o := range r.old {
		if o != leader {
			id := fmt.Sprint(o.ID)
			change(nil, []string{id})
			change([]string{lines[id] + ";" + o.Addr()}, nil)
			break
		}
	}
	change(nil, []string{fmt.Sprint(leader.ID)})
	r.inSync()
	if n := l.expired(); n > 0 {
		t.Errorf("%d sessions have expired", n)
	}
	l.check(s.addr)
}

package takeover

import (
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestRollover: zkgo follows an ensemble and replaces it. The ensemble's leader steps down because
// the lower 32 bits of its zxids are used up. Each leader has 1,500 zxids. Clients know only the
// old servers, or also zkgo's, to which they move each time.
func TestRollover(t *testing.T) {
	t.Parallel()
	t.Run("old", func(t *testing.T) { t.Parallel(); rollOver(t) })
	t.Run("serve", func(t *testing.T) { t.Parallel(); rollOver(t, "--serve") })
}

func rollOver(t *testing.T, flags ...string) {
	t.Helper()
	const last = 1<<32 - 1 // a leader steps down instead of using it
	r := newRigIn(t, nil, 1, oracle.Options{JVM: []string{fmt.Sprint("-Dzookeeper.testingonly.initialZxid=", last-1500)}}, flags...)
	known := r.addrs()
	if len(flags) == 0 {
		known = known[:len(r.old)]
	}
	l := startLoad(t, known)
	r.launch()
	s := r.new[0]
	var epochs []int64
	newest := int64(0)
	must.Do(t, wait.Success(patience, "the leader to step down", func() error {
		st, err := s.status()
		if err != nil {
			return err
		}
		if n := len(epochs); n == 0 || st.Zxid>>32 != epochs[n-1] {
			t.Logf("%#x is the first zxid seen after %#x", st.Zxid, newest)
			epochs = append(epochs, st.Zxid>>32)
		}
		newest = st.Zxid
		if len(epochs) < 3 {
			return fmt.Errorf("the epochs so far are %d: %+v", epochs, st)
		}
		return nil
	}))
	r.inSync()
	l.goesOn()
	// The leader may step down at any moment, also during a cutover.
	must.Do(t, wait.Success(patience, "a cutover", func() error {
		err := r.cutover()
		if err != nil {
			t.Log(err)
			for _, g := range r.gates {
				g.reopen(t, r.fence)
			}
		}
		return err
	}))
	if len(flags) > 0 {
		l.goesOn()
	} else {
		for _, p := range l.people {
			p.Close() // they know no zkgo server
		}
	}
	if n := l.expired(); n > 0 {
		t.Errorf("%d sessions have expired", n)
	}
	l.check(s.addr)
}

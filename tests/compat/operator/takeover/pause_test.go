package takeover

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
)

var znodes = flag.Int("znodes", 0, "`number` of znodes of 100 bytes with which TestPause measures the pause of a cutover")

// TestPause measures how long a cutover keeps clients from writing. It has no limit: see
// docs/operate/migrate.md for results.
func TestPause(t *testing.T) {
	if *znodes == 0 {
		t.Skip("measures; set -znodes, e.g. to 100000")
	}
	for _, flags := range [][]string{nil, {"--serve"}} {
		r := newRig(t, 3, flags...)
		c := dial(t, r.old[0].Addr())
		fill(t, c, *znodes)
		began := time.Now()
		r.launch()
		synced := time.Since(began)
		addrs := r.addrs()
		if flags != nil {
			addrs = addrs[3:] // the clients have moved before
		}
		l := startLoad(t, addrs)
		l.goesOn()
		before := l.longest.Swap(0)
		must.Do(t, r.cutover())
		l.goesOn()
		t.Logf("%d znodes %v: in sync after %v; longest pause of a writer: %v before the cutover, %v with it", *znodes, flags, synced.Round(10*time.Millisecond), rounded(before), rounded(l.longest.Load()))
		var zkgos []string
		for _, s := range r.new {
			zkgos = append(zkgos, s.addr)
		}
		l.check(zkgos...)
		for _, s := range r.new {
			s.kill()
		}
		for _, s := range r.old {
			s.Stop()
		}
	}
}

// fill creates n znodes in transactions of 500.
func fill(t *testing.T, c *person, n int) {
	t.Helper()
	data := make([]byte, 100)
	for dir := 0; dir*5000 < n; dir++ {
		must.Get(c.Create(fmt.Sprint("/fill", dir), nil, 0, all))(t)
		for i := 0; i < 5000; i += 500 {
			var ops []any
			for k := range 500 {
				ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("/fill%d/%d", dir, i+k), Data: data, Acl: all})
			}
			_, err := c.Multi(ops...)
			must.Do(t, err)
		}
	}
}

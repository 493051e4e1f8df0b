package chaos

import (
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestKilledLeaderLeavesConnections checks that clients of the remaining servers,
// with nothing in flight and short sessions, do not notice that the leader has
// died.
//
// If there is no leader in time, their servers have to close the connections. Only a quick
// election therefore proves anything, and on a busy machine not every election is quick.
func TestKilledLeaderLeavesConnections(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	const timeout, quick = 4 * time.Second, time.Second
	const tries = 3
	for range tries {
		election, dropped := killUnderIdle(t, c, timeout)
		t.Logf("another leader after %v, %d connections closed", election, dropped)
		if dropped == 0 {
			return
		}
		if election > quick {
			t.Log("this machine is too busy to tell")
			return
		}
	}
	t.Error("connections were closed although another leader was there at once")
}

// killUnderIdle kills the leader while clients of the other servers only ping. It
// returns an upper bound of the time until another server led, and how many
// clients lost their connections, and leaves a healthy ensemble.
func killUnderIdle(t *testing.T, c *Cluster, timeout time.Duration) (election time.Duration, dropped int) {
	t.Helper()
	leader, epoch, err := c.Leader()
	must.Do(t, err)
	var idle []*pinger
	for _, m := range c.Others(leader) {
		for range 5 {
			idle = append(idle, &pinger{c: m.connect(t, timeout), m: m})
		}
	}
	pings := make(chan error, len(idle))
	for _, p := range idle {
		go func() { pings <- every(200*time.Millisecond, timeout+time.Second, p.ping) }()
	}
	began := time.Now()
	leader.Kill()
	_, _, err = c.AwaitLeader(epoch)
	must.Do(t, err)
	election = time.Since(began)
	for range idle {
		if err := <-pings; err != nil {
			t.Error(err)
		}
	}
	for _, p := range idle {
		dropped += p.dropped
		p.c.Close() //nolint:errcheck // its session may expire
	}
	must.Do(t, (&scene{Cluster: c}).revive(leader))
	return election, dropped
}

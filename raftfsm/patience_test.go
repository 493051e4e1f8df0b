package raftfsm

import (
	"testing"
	"time"
)

// TestLeaderIsGivenUpInTime either cuts a leader off silently, or slows its process
// down while its machine accepts connections, and measures when another server leads,
// for typical configurations.
func TestLeaderIsGivenUpInTime(t *testing.T) {
	for name, tc := range map[string]struct {
		tick       time.Duration
		sync       int
		silent     bool          // the machine is cut off, too
		more, less time.Duration // bounds of the time until another server leads
	}{
		"cut off, defaults":       {2 * time.Second, 5, true, time.Second, 5 * time.Second},
		"cut off, patient":        {4 * time.Second, 10, true, time.Second, 5 * time.Second},
		"cut off, impatient":      {500 * time.Millisecond, 4, true, 500 * time.Millisecond, 2500 * time.Millisecond},
		"process slow, defaults":  {2 * time.Second, 5, false, 3500 * time.Millisecond, 6 * time.Second},
		"process slow, patient":   {4 * time.Second, 10, false, 15 * time.Second, 20 * time.Second},
		"process slow, impatient": {500 * time.Millisecond, 4, false, 700 * time.Millisecond, 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && tc.tick != 2*time.Second {
				t.Skip("only the defaults with -short")
			}
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3)
				for _, m := range c.list {
					c.start(m.ID, func(cfg *Config) { cfg.TickTime, cfg.SyncLimit = tc.tick, tc.sync })
				}
				for _, r := range c.rigs {
					r.awaitServed()
				}
				old, _ := c.leader()
				var rest []string
				for id := range c.rigs {
					if id != old {
						rest = append(rest, hostOf(id))
					}
				}
				time.Sleep(time.Minute)
				if tc.silent {
					c.net.Partition([]string{hostOf(old)}, rest)
				} else {
					for _, r := range rest { // no byte passes, but connections are accepted
						c.net.Lose(hostOf(old), r, 1)
						c.net.Lose(r, hostOf(old), 1)
					}
				}
				began := time.Now()
				c.eventually("another server leads", func() bool {
					for id, r := range c.rigs {
						if s := r.Status(); id != old && s.Role == Leader && s.Serving {
							return true
						}
					}
					return false
				})
				if took := time.Since(began); took < tc.more || took > tc.less {
					t.Errorf("another server leads after %v, want %v to %v", took, tc.more, tc.less)
				} else {
					t.Logf("another server leads after %v", took)
				}
				c.net.Rejoin([]string{hostOf(old)}, rest)
				c.rigs[old].awaitServed()
				c.settled()
			})
		})
	}
}

package raftfsm

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestTimesFollowTheConfiguration: the operator's patience is respected, and a leader
// that is cut off is still replaced within the bound.
func TestTimesFollowTheConfiguration(t *testing.T) {
	for _, tc := range []struct {
		tick              time.Duration
		sync              int
		lease, dead, slow time.Duration
	}{
		{2 * time.Second, 5, 2500 * time.Millisecond, 2 * time.Second, 4 * time.Second},
		{time.Second, 5, 2500 * time.Millisecond, 2 * time.Second, 2 * time.Second},
		{4 * time.Second, 10, 2500 * time.Millisecond, 2 * time.Second, 16 * time.Second},
		{500 * time.Millisecond, 4, time.Second, 800 * time.Millisecond, 800 * time.Millisecond},
		{10 * time.Millisecond, 2, 500 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond},
	} {
		got := Config{TickTime: tc.tick, SyncLimit: tc.sync}.timing()
		if got.lease != tc.lease || got.dead != tc.dead || got.slow != tc.slow {
			t.Errorf("tickTime %v, syncLimit %d: %+v", tc.tick, tc.sync, got)
		}
		if got.pace < got.lease || got.pace/5 >= got.ask*3/4 { // Raft's rule; and a late heartbeat is no silence
			t.Errorf("tickTime %v, syncLimit %d: heartbeats every tenth to fifth of %v, silence after %v", tc.tick, tc.sync, got.pace, got.ask)
		}
	}
}

// TestSilenceCountsOnlyWhileAwake: a server that was stopped itself doesn't blame its
// leader for that.
func TestSilenceCountsOnlyWhileAwake(t *testing.T) {
	const tick = 100 * time.Millisecond
	lead := leadOf{raft.ServerID("3"), 7}
	now := time.Now()
	heard := now
	var s silence
	s.look(lead, heard, now, 2*tick)
	for range 10 {
		now = now.Add(tick)
		s.look(lead, heard, now, 2*tick)
	}
	now = now.Add(time.Hour) // it slept
	if got := s.look(lead, heard, now, 2*tick); got != 12*tick {
		t.Errorf("silent for %v, want %v", got, 12*tick)
	}
	now = now.Add(tick)
	if got := s.look(lead, now, now, 2*tick); got != 0 {
		t.Errorf("silent for %v after a word from the leader", got)
	}
	now = now.Add(tick)
	if got := s.look(leadOf{"2", 8}, heard, now, 2*tick); got != 0 {
		t.Errorf("silent for %v under another leader", got)
	}
}

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

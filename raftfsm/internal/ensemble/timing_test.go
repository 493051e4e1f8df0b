package ensemble

import (
	"testing"
	"testing/synctest"
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
		got := (&Config{TickTime: tc.tick, SyncLimit: tc.sync}).Timing()
		if got.Lease != tc.lease || got.Dead != tc.dead || got.Slow != tc.slow {
			t.Errorf("tickTime %v, syncLimit %d: %+v", tc.tick, tc.sync, got)
		}
		if got.pace < got.Lease || got.pace/5 >= got.Ask*3/4 { // Raft's rule; and a late heartbeat is no silence
			t.Errorf("tickTime %v, syncLimit %d: heartbeats every tenth to fifth of %v, silence after %v", tc.tick, tc.sync, got.pace, got.Ask)
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

// TestRhythm: tasks with different starts and intervals meet.
func TestRhythm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Rhythm{Began: time.Now()}
		time.Sleep(1300 * time.Millisecond)
		for _, tc := range []struct{ every, want time.Duration }{
			{500 * time.Millisecond, 200 * time.Millisecond},
			{time.Second, 700 * time.Millisecond},
			{1300 * time.Millisecond, 1300 * time.Millisecond},
		} {
			if got := r.Next(tc.every); got != tc.want {
				t.Errorf("every %v: %v, want %v", tc.every, got, tc.want)
			}
		}
	})
}

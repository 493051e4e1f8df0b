package raftfsm

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRhythm: tasks with different starts and intervals meet.
func TestRhythm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rhythm{time.Now()}
		time.Sleep(1300 * time.Millisecond)
		for _, tc := range []struct{ every, want time.Duration }{
			{500 * time.Millisecond, 200 * time.Millisecond},
			{time.Second, 700 * time.Millisecond},
			{1300 * time.Millisecond, 1300 * time.Millisecond},
		} {
			if got := r.next(tc.every); got != tc.want {
				t.Errorf("every %v: %v, want %v", tc.every, got, tc.want)
			}
		}
	})
}

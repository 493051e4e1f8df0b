package session

import (
	"testing"
	"time"
)

// TestBounds compares the bounds with the rule.
func TestBounds(t *testing.T) {
	t.Parallel()
	b := Bounds{Sync: 10 * time.Second}
	for _, tc := range []struct{ timeout, reply, welcome time.Duration }{
		{3 * time.Second, 2 * time.Second, 1500 * time.Millisecond},
		{12 * time.Second, 8 * time.Second, 6 * time.Second},
		{15 * time.Second, 10 * time.Second, 7500 * time.Millisecond},
		{time.Hour, 10 * time.Second, 7500 * time.Millisecond},
	} {
		if got := b.Reply(tc.timeout); got != tc.reply {
			t.Errorf("timeout %v: replies with a state of %v", tc.timeout, got)
		}
		if got := b.Welcome(tc.timeout); got != tc.welcome {
			t.Errorf("timeout %v: welcomes with a state of %v", tc.timeout, got)
		}
	}
}

// TestSigns: a reply to a client needs a sign of life that the ensemble knows and that is
// younger than nine tenths of the timeout, here 9 s.
func TestSigns(t *testing.T) {
	t.Parallel()
	const never = -1 << 62
	type report struct{ now, contact int64 } // in seconds, as below
	for name, tc := range map[string]struct {
		attached     int64
		reports      []report
		contact, now int64
		want         bool
	}{
		"attached":                          {attached: 1, contact: never, now: 9, want: true},
		"attached long ago":                 {attached: 1, contact: never, now: 10},
		"reported, not acknowledged":        {attached: 1, reports: []report{{5, never}}, contact: 4, now: 10},
		"reported and acknowledged":         {attached: 1, reports: []report{{5, never}}, contact: 5, now: 13, want: true},
		"acknowledged long ago":             {attached: 1, reports: []report{{5, never}}, contact: 5, now: 14},
		"the contact alone doesn't help":    {attached: 1, contact: 50, now: 50},
		"the last report isn't known":       {attached: 1, reports: []report{{5, never}, {12, 6}}, contact: 6, now: 14},
		"but the one before is":             {attached: 1, reports: []report{{5, never}, {12, 6}}, contact: 6, now: 13, want: true},
		"both are known":                    {attached: 1, reports: []report{{5, never}, {12, 6}}, contact: 12, now: 20, want: true},
		"two reports without contact":       {attached: 1, reports: []report{{5, never}, {8, never}}, contact: 7, now: 10},
		"an attach replaces what was known": {attached: 30, reports: []report{{31, never}}, contact: never, now: 38, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scale := func(s int64) int64 {
				if s == never {
					return never
				}
				return s * int64(time.Second)
			}
			var s Signs
			s.Attached(scale(tc.attached))
			for _, r := range tc.reports {
				s.Reported(scale(r.now), scale(r.contact))
			}
			if got := s.Alive(10*time.Second, scale(tc.now), scale(tc.contact)); got != tc.want {
				t.Errorf("alive: %v", got)
			}
		})
	}
}

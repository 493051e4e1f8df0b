package limits

import (
	"testing"
	"time"
)

func TestSignsOfLifeOfASlowReader(t *testing.T) {
	t.Parallel()
	minute := int64(time.Minute)
	type step struct {
		at            int64
		taken         int64
		inbox         int
		waiting       int
		alive, stalls bool
	}
	for name, steps := range map[string][]step{
		"it reads something": {{0, 0, 0, 1 << 20, false, false}, {1, 1, 0, 1 << 20, true, false}, {2, 1, 0, 1 << 20, false, false}},
		"it sends something": {{0, 0, 0, 1 << 20, false, false}, {1, 0, 12, 1 << 20, true, false}, {2, 0, 12, 1 << 20, false, false}},
		"it pings and reads nothing": {{0, 0, 0, 1 << 20, false, false}, {minute, 0, 12, 1 << 20, true, false},
			{2 * minute, 0, 24, 1 << 20, true, false}, {2*minute + 1, 0, 36, 1 << 20, true, true}},
		"it reads a byte a minute": {{0, 0, 0, 1 << 20, false, false}, {minute, 1, 0, 1 << 20, true, false}, {2*minute + 1, 2, 0, 1 << 20, true, true}},
		"it reads enough":          {{0, 0, 0, 1 << 20, false, false}, {minute, 64 << 10, 0, 1 << 20, true, false}, {3 * minute, 64<<10 + 1, 0, 1 << 20, true, false}},
		"little is queued for it":  {{0, 0, 0, 1000, false, false}, {5 * minute, 0, 12, 1000, true, false}, {9 * minute, 0, 24, 1000, true, false}},
	} {
		var p Progress
		for i, s := range steps {
			if alive, stalls := p.Look(s.at, s.taken, s.inbox, s.waiting); alive != s.alive || stalls != s.stalls {
				t.Errorf("%s, step %d: alive %v, stalled %v", name, i, alive, stalls)
			}
		}
	}
}

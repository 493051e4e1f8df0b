package main

import (
	"testing"
	"time"
)

func TestIdleTime(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]time.Duration{
		"cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5": 4500 * time.Millisecond,
		"cpu  10 20 30 400 5":                             4050 * time.Millisecond,
		"cpu  10 20 30 400":                               -1,
		"cpu0 10 20 30 400 50":                            -1,
		"cpu  10 20 30 x 50":                              -1,
		"cpu  10 20 30 400 y":                             -1,
		"":                                                -1,
	} {
		got, ok := idleTime([]byte(stat))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v", stat, got, want)
		}
	}
}

func TestProcessorTimes(t *testing.T) {
	t.Parallel()
	used, idle, ok := processorTimes()
	if !ok || used <= 0 || idle <= 0 {
		t.Errorf("%v used, %v idle, %v", used, idle, ok)
	}
}

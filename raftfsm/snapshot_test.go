package raftfsm

import "testing"

// What is applied while a snapshot that is due has not been begun asks for it
// again: that does not call for another one right behind it.
func TestOneSnapshotWhenOneIsDue(t *testing.T) {
	t.Parallel()
	c := snapCounter{maxOps: 10, maxBytes: 1 << 20, trigger: make(chan struct{}, 1)}
	c.reset(0)
	for range 2 {
		c.ops += c.limitOps
		c.poke()
		select {
		case <-c.trigger:
		default:
			t.Fatal("no snapshot is due after so many transactions")
		}
		c.poke()
		c.reset(0)
		select {
		case <-c.trigger:
			t.Fatal("a snapshot is due right behind the one before")
		default:
		}
	}
}

// A large tree is written less often, but not as rarely as it likes.
func TestLargeTreesHaveFewerSnapshots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ znodes, atMost int }{{0, 1000}, {3999, 1000}, {8000, 2000}, {1 << 30, 10_000}} {
		c := snapCounter{maxOps: 1000, maxBytes: 1 << 20, trigger: make(chan struct{}, 1)}
		for range 100 {
			c.reset(tt.znodes)
			if c.limitOps > tt.atMost || c.limitOps < tt.atMost/2 {
				t.Fatalf("%d znodes: a snapshot after %d transactions, want %d to %d", tt.znodes, c.limitOps, tt.atMost/2, tt.atMost)
			}
		}
	}
}

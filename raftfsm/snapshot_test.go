package raftfsm

import "testing"

// What is applied while a snapshot that is due has not been begun asks for it
// again: that does not call for another one right behind it.
func TestOneSnapshotWhenOneIsDue(t *testing.T) {
	t.Parallel()
	c := snapCounter{maxOps: 10, maxBytes: 1 << 20, trigger: make(chan struct{}, 1)}
	c.reset()
	for range 2 {
		c.ops += c.limitOps
		c.poke()
		select {
		case <-c.trigger:
		default:
			t.Fatal("no snapshot is due after so many transactions")
		}
		c.poke()
		c.reset()
		select {
		case <-c.trigger:
			t.Fatal("a snapshot is due right behind the one before")
		default:
		}
	}
}

// A snapshot is late when several times as much was applied as one is due after,
// until the next one begins.
func TestLateSnapshot(t *testing.T) {
	t.Parallel()
	c := snapCounter{maxOps: 10, maxBytes: 1 << 20, trigger: make(chan struct{}, 1)}
	for _, more := range []func(){
		func() { c.ops += lateAfter * c.maxOps },
		func() { c.bytes += c.maxBytes },
	} {
		c.reset()
		c.ops = c.limitOps
		if c.poke(); c.late.Load() {
			t.Error("a snapshot that is due is late already")
		}
		more()
		if c.poke(); !c.late.Load() {
			t.Errorf("no snapshot is late after %d transactions and %d bytes", c.ops, c.bytes)
		}
	}
	if c.reset(); c.late.Load() {
		t.Error("late behind a snapshot")
	}
}

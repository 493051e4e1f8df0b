package raftfsm

import "testing"

// TestCommandsOfAnEarlierStart: what this server sent before it was started
// anew has numbers that are used again. Applying it answers nobody.
func TestCommandsOfAnEarlierStart(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(5, 0)
	r.mustFeed(t, l.begin())
	if err := r.node.Propose(&Command{Kind: KindSync, Waiter: "somebody"}); err != nil {
		t.Fatal(err)
	}
	for _, nonce := range []uint64{r.node.intake.nonce + 1, r.node.intake.nonce} {
		b := l.batch(Command{Kind: KindSync})
		h := runHeader{server: r.node.intake.server, nonce: nonce, first: 1, count: 1, size: uint32(len(b) - batchHeaderSize - runHeaderSize)}
		h.put(b[batchHeaderSize:])
		r.recorder.applied = nil
		r.mustFeed(t, b)
		if waited, own := r.recorder.applied[0].waited, nonce == r.node.intake.nonce; waited != own {
			t.Errorf("a command of this start: %t; somebody is answered: %t", own, waited)
		}
	}
}

package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// TestReadersGetInBetween: a batch of maximum size doesn't block readers until its end.
// The machine releases the lock after a fixed number of transactions, and never within
// one.
func TestReadersGetInBetween(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(5, command.FlagStandalone)
	r.mustFeed(t, l.begin())
	s := firstSession()
	r.mustFeed(t, l.batch(attachCommand()))
	in := func() (children int, between bool) {
		r.Tree.RLock()
		defer r.Tree.RUnlock()
		var stat proto.Stat
		if n := r.Tree.Get("/n"); n != nil {
			n.Stat(&stat)
		}
		return int(stat.NumChildren), stat.NumChildren > 0 && stat.NumChildren < propose.MaxBatchOps
	}
	for begin := time.Now(); time.Since(begin) < patience; {
		cmds := []command.Command{create(s, "/n", 0)}
		for i := 1; i < propose.MaxBatchOps; i++ {
			cmds = append(cmds, create(s, fmt.Sprintf("/n/%d", i), 0))
		}
		batch := l.batch(cmds...)
		done := make(chan error, 1)
		go func() { done <- r.feed(batch) }()
		got := 0
		for running := true; running; {
			if n, between := in(); between && (n+1)%apply.ApplySlice != 0 {
				t.Fatalf("a reader got in after %d commands", n+1)
			} else if between && n+1 < propose.MaxBatchOps {
				got++
			}
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
		}
		if got > 0 {
			return
		}
		cmds = cmds[:0]
		for i := 1; i < propose.MaxBatchOps; i++ {
			cmds = append(cmds, write(s, proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprintf("/n/%d", i), Version: -1}))
		}
		r.mustFeed(t, l.batch(append(cmds, write(s, proto.OpDelete, &proto.DeleteRequest{Path: "/n", Version: -1}))...))
	}
	t.Errorf("no reader has got in before the end of a batch, in %v", patience)
}

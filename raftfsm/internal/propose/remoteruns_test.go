package propose

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// bulkRun returns a run of one command with a body of the given size.
func bulkRun(t *testing.T, server uint8, size int) []byte {
	t.Helper()
	c := command.Command{Kind: command.KindSync, Body: make([]byte, size)}
	q := NewLocalRuns(server, 1, NewBacklog())
	if err := q.Propose(&c, true); err != nil {
		t.Fatal(err)
	}
	run, n := q.Take(nil, 0)
	if n != 1 {
		t.Fatalf("%d commands", n)
	}
	return run
}

// TestFairTurns: a server that sends without pause should not delay other servers. Every
// server should get the same number of bytes, including this server, and a server that
// sends only occasionally should be served immediately.
func TestFairTurns(t *testing.T) {
	t.Parallel()
	n := newQueues()
	n.remote.Open(3)
	large4 := bulkRun(t, 4, 100<<10)
	large, small := bulkRun(t, 2, 100<<10), bulkRun(t, 3, 10<<10)
	for range 3 * maxPeerBytes / len(large) / 4 {
		if err := n.remote.Add(3, 2, large); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 * maxPeerBytes / len(small) / 4 {
		if err := n.remote.Add(3, 3, small); err != nil {
			t.Fatal(err)
		}
	}
	body := make([]byte, 50<<10)
	for range 3 * maxPeerBytes / len(body) / 4 {
		if err := n.local.Propose(&command.Command{Kind: command.KindSync, Body: body, Waiter: numbered(1)}, false); err != nil {
			t.Fatal(err)
		}
	}
	p := &Proposer{Incarnation: 3, Now: time.Now, Claim: noClaim, Sizes: &n.sizes, Local: n.local, Remote: n.remote}
	got := map[uint8]int{}
	count := func() (alone map[uint8]int) {
		t.Helper()
		alone = map[uint8]int{}
		var h command.BatchHeader
		runs, err := h.Decode(p.Collect())
		if err != nil {
			t.Fatal(err)
		}
		for len(runs) > 0 {
			var r command.RunHeader
			b, rest, err := r.Decode(runs)
			if err != nil {
				t.Fatal(err)
			}
			alone[r.Server] += len(b)
			got[r.Server] += len(b)
			runs = rest
		}
		return alone
	}
	for range 20 {
		count()
	}
	// Runs are not split, so one of 250 KiB is the smallest share.
	if most, least := max(got[1], got[2], got[3]), min(got[1], got[2], got[3]); most-least > MaxBatchBytes {
		t.Errorf("of 20 batches the servers had %v bytes", got)
	}
	if err := n.remote.Add(3, 4, bulkRun(t, 4, 1000)); err != nil {
		t.Fatal(err)
	}
	if first, second := count(), count(); first[4]+second[4] == 0 {
		t.Errorf("a server that comes late waits for the others: %v, %v", first, second)
	}
	// It has had far less than the others by now, and gets no credit for that.
	for range 10 {
		if err := n.remote.Add(3, 4, large4); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third := count(), count(), count()
	for server := uint8(1); server <= 3; server++ {
		if first[server]+second[server]+third[server] == 0 {
			t.Errorf("server %d waits for one that comes late: %v, %v, %v", server, first, second, third)
		}
	}
}

// TestPeerQueues: while too much of one server is queued, only that server waits, until
// the proposer has removed a part of its queue.
func TestPeerQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewRemoteRuns(NewBacklog(), new(command.Checkers))
		q.Open(3)
		run := bulkRun(t, 2, 1<<20)
		added := 0
		blocked := make(chan error)
		go func() {
			for {
				if err := q.Add(3, 2, run); err != nil {
					blocked <- err
					return
				}
				added++
			}
		}()
		synctest.Wait()
		if before := added; before*len(run) > maxPeerBytes+2*len(run) || before < 2 {
			t.Fatalf("%d runs of %d bytes wait", before, len(run))
		}
		if err := q.Add(3, 3, bulkRun(t, 3, 1<<20)); err != nil {
			t.Fatal(err)
		}
		before := added
		for range 2 {
			if _, n := q.take(2, nil, 0); n != 1 {
				t.Fatal("nothing to take")
			}
		}
		synctest.Wait()
		if added != before+2 {
			t.Fatalf("%d runs came in for 2 that went", added-before)
		}
		q.Close()
		if err := <-blocked; err != ErrNewLeader {
			t.Fatal(err)
		}
	})
}

package raftfsm

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

var chaosSeeds = flag.Int("chaos.seeds", 1, "number of runs of TestChaos")

// TestChaos writes through all servers while links are cut, stopped, delayed and reset
// and servers are killed and restarted, in fake time. At the end, all servers have the
// same state, and it has every acknowledged write.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; not with -short")
	}
	for seed := range *chaosSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { chaos(t, uint64(seed)) })
		})
	}
}

// writer creates znodes through one server until it is stopped, and records which creates
// were acknowledged.
type writer struct {
	id    uint64
	mu    *sync.Mutex
	acked map[string]bool
	rig   func() *rig // nil while the server is down
	stop  chan struct{}
}

func (w *writer) run() {
	var s session.Session
	var on *rig
	for i := 0; ; i++ {
		select {
		case <-w.stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		r := w.rig()
		if r == nil {
			continue
		}
		if r != on || s.ID == 0 {
			o, ok := w.try(r, command.Command{Kind: command.KindAttach, Timeout: 3_600_000, Password: [16]byte{1}})
			if !ok {
				continue
			}
			on, s = r, o.attached
		}
		path := fmt.Sprintf("/w%d-%d", w.id, i)
		o, ok := w.try(r, create(s, path, 0))
		switch {
		case !ok:
			s.ID = 0 // its connection was closed
		case o.code == proto.Ok:
			w.mu.Lock()
			w.acked[path] = true
			w.mu.Unlock()
		}
	}
}

// try proposes c and waits until it is applied or lost.
func (w *writer) try(r *rig, c command.Command) (outcome, bool) {
	ch := make(chan outcome, 1)
	c.Waiter = waiter(ch)
	lost := r.lostCount()
	if r.Propose(&c) != nil {
		return outcome{}, false
	}
	for {
		select {
		case o := <-ch:
			return o, true
		case <-w.stop:
			return outcome{}, false
		case <-time.After(5 * time.Millisecond):
			if r.lostCount() != lost {
				return outcome{}, false
			}
		}
	}
}

func chaos(t *testing.T, seed uint64) {
	const servers = 3
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := newCluster(t, servers).onDisk()
	c.startAll()
	var mu sync.Mutex // guards up and acked
	up := make(map[uint64]*rig)
	acked := make(map[string]bool)
	for id, r := range c.rigs {
		up[id] = r
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for id := uint64(1); id <= servers; id++ {
		w := &writer{id: id, mu: &mu, acked: acked, stop: stop, rig: func() *rig {
			mu.Lock()
			defer mu.Unlock()
			return up[id]
		}}
		wg.Go(w.run)
	}
	f := &faults3{c: c, rnd: rnd, mu: &mu, up: up}
	for range 12 {
		f.inject()
		time.Sleep(time.Duration(500+rnd.IntN(4000)) * time.Millisecond)
	}
	f.heal()
	time.Sleep(5 * time.Second)
	close(stop)
	wg.Wait()
	for _, r := range c.rigs {
		r.awaitServed()
	}
	c.settled()
	if len(acked) < 300 {
		t.Errorf("only %d writes were acknowledged: the run shows nothing", len(acked))
	}
	for path := range acked {
		if !c.rigs[1].exists(path) {
			t.Errorf("%s was acknowledged and is gone", path)
		}
	}
	t.Logf("seed %d: %d writes, %v, epoch %d", seed, len(acked), f.done, c.rigs[1].Status().Epoch)
}

// faults3 injects faults into an ensemble of three, never more than it must survive.
type faults3 struct {
	c     *cluster
	rnd   *rand.Rand
	mu    *sync.Mutex
	up    map[uint64]*rig
	down  uint64
	wiped bool
	done  []string
}

func (f *faults3) inject() {
	f.heal()
	id := uint64(f.rnd.IntN(3) + 1)
	if f.rnd.IntN(2) == 0 {
		for x, r := range f.c.rigs {
			if r.Status().Role == Leader {
				id = x
			}
		}
	}
	var others []string
	for x := uint64(1); x <= 3; x++ {
		if x != id {
			others = append(others, hostOf(x))
		}
	}
	what := []string{"kill", "stop", "partition", "one way", "half cut", "delay", "reset", "wipe"}[f.rnd.IntN(8)]
	f.done = append(f.done, fmt.Sprintf("%s %d", what, id))
	switch what {
	case "kill", "stop", "wipe":
		f.mu.Lock()
		delete(f.up, id)
		f.mu.Unlock()
		f.down = id
		switch what {
		case "stop":
			f.c.stop(id)
		case "kill":
			f.c.kill(id)
		case "wipe":
			f.c.kill(id)
			f.c.wipe(id)
			f.wiped = true
		}
	case "partition":
		f.c.net.Partition([]string{hostOf(id)}, others)
	case "one way":
		for _, o := range others {
			f.c.net.Hold(hostOf(id), o)
		}
	case "half cut":
		f.c.net.Partition([]string{hostOf(id)}, others[:1])
	case "delay":
		for _, o := range others {
			f.c.net.Delay(hostOf(id), o, time.Duration(f.rnd.IntN(400))*time.Millisecond)
		}
	case "reset":
		for _, o := range others {
			f.c.net.Reset(hostOf(id), o)
		}
	}
}

// heal ends every fault.
func (f *faults3) heal() {
	all := []string{hostOf(1), hostOf(2), hostOf(3)}
	f.c.net.Rejoin(all, all)
	if f.down != 0 {
		r := f.c.start(f.down)
		f.mu.Lock()
		f.up[f.down] = r
		f.mu.Unlock()
		f.down = 0
		if f.wiped { // no other disk may be wiped before this server has a vote again
			f.c.eventually("the wiped server has a vote again", func() bool { return f.c.voters() == 3 })
			f.wiped = false
		}
	}
}

package raftfsm

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// trouble is a set of delays for one server that the test switches on and off.
type trouble struct {
	on atomic.Bool
	delays
}

// delays are the ways to delay entries or their application.
type delays struct {
	rate  int           // bytes per second to the server; 0: unlimited
	above int           // larger writes to the server are lost; 0: no writes are lost
	apply time.Duration // duration of applying an entry
	sync  time.Duration // duration of a write to the log
}

// lossyLink is a network with trouble on the connections to one host.
type lossyLink struct {
	quorum.Network
	to string
	t  *trouble
}

func (n lossyLink) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	if host, _, _ := net.SplitHostPort(addr); err != nil || host != n.to {
		return c, err
	}
	return &lossyConn{Conn: c, t: n.t}, nil
}

// lossyConn also loses all data after a lost write, like TCP, which delivers in order.
type lossyConn struct {
	net.Conn
	t    *trouble
	lost atomic.Bool
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if c.t.on.Load() {
		if c.t.above > 0 && len(b) > c.t.above {
			c.lost.Store(true)
		}
		if c.t.rate > 0 {
			time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(c.t.rate))
		}
	}
	if c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// slowApplier is a Handler that delays applying each entry.
type slowApplier struct {
	*recorder
	t *trouble
}

func (a slowApplier) BatchDone() {
	if a.t.on.Load() && a.t.apply > 0 {
		time.Sleep(a.t.apply)
	}
	a.recorder.BatchDone()
}

// history records when the write of each value was acknowledged.
type history struct {
	mu    sync.Mutex
	acked []time.Time
}

// age returns how stale value is: the time since the next value was acknowledged.
func (h *history) age(value uint64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if next := value + 1; next < uint64(len(h.acked)) {
		return time.Since(h.acked[next])
	}
	return 0
}

// write sets a znode to 0, 1, 2 and so on until stop is closed.
func (h *history) write(r *rig, path string, size int, pause time.Duration, stop <-chan struct{}) {
	s := r.attach(time.Hour)
	r.do(create(s, path, 0))
	data := make([]byte, size)
	for i := uint64(0); ; i++ {
		binary.BigEndian.PutUint64(data, i)
		r.do(set(s, path, data))
		h.mu.Lock()
		h.acked = append(h.acked, time.Now())
		h.mu.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
	}
}

// value returns the value in the server's tree, and false before the first write.
func (r *rig) value(path string) (uint64, bool) {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	n := r.Tree().Get(path)
	if n == nil || len(n.Data()) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(n.Data()), true
}

// TestStateIsNeverOlderThanTheBound: whatever delays applying entries on a server, its
// reads are never staler than the bound while it serves. It stops serving when its state is
// too old, and serves again after it has caught up, without flapping.
func TestStateIsNeverOlderThanTheBound(t *testing.T) {
	for name, tc := range map[string]struct {
		delays
		leader bool
		pause  time.Duration // between two writes
		crowd  int           // more writers, because a second entry is sent only if it is full
		size   int           // of a write
	}{
		"link of 400 kbit/s":                      {delays: delays{rate: 400_000 / 8}},
		"link of 700 kbit/s":                      {delays: delays{rate: 700_000 / 8}},
		"packets of more than 200 bytes are lost": {delays: delays{above: 200}},
		"slow disk":                               {delays: delays{sync: time.Second}},
		"slow apply":                              {delays: delays{apply: 40 * time.Millisecond}},
		"slow apply of the leader":                {delays: delays{apply: 8 * time.Second}, leader: true, pause: time.Second, crowd: 4, size: 120 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (tc.apply == 0 || tc.leader) {
				t.Skip("takes ten seconds and more; not with -short")
			}
			inBubble(t, func(t *testing.T) {
				tr := &trouble{delays: tc.delays}
				testNeverOlder(t, tr, tc.leader, max(tc.pause, cost.InShort(20*time.Millisecond, 9*time.Millisecond)), tc.crowd, max(tc.size, 1100))
			})
		})
	}
}

func testNeverOlder(t *testing.T, tr *trouble, leads bool, pause time.Duration, crowd, size int) {
	victim := uint64(1)
	if leads {
		victim = 3 // the highest id, as in TestFirstLeader
	}
	c := newCluster(t, 3).onDisk()
	slow := &stalling{FS: vfs.OS{}}
	for _, m := range c.list {
		c.start(m.ID, func(cfg *Config) {
			cfg.TickTime, cfg.SyncLimit = time.Second, 5
			cfg.Peers.Network = lossyLink{cfg.Peers.Network, hostOf(victim), tr}
			if m.ID == victim {
				cfg.FS, cfg.Handler = slow, slowApplier{cfg.Handler.(*recorder), tr}
			}
		})
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	c.settled()
	if lead, _ := c.leader(); (lead == victim) != leads {
		t.Fatalf("server %d leads", lead)
	}
	limit, r := 5*time.Second, c.rigs[victim]
	var h history
	stop := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() { h.write(c.rigs[2], "/n", size, pause, stop) })
	for i := range crowd {
		writers.Go(func() { new(history).write(c.rigs[2], fmt.Sprintf("/m%d", i), size, pause, stop) })
	}
	time.Sleep(2 * time.Second)
	var worst, served time.Duration
	watch := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			v, ok := r.value("/n")
			serves := time.Since(r.Fresh()) < limit
			age := h.age(v)
			if !ok {
				continue
			}
			worst = max(worst, age)
			if serves {
				served = max(served, age)
			}
		}
	}
	lasts, after := 40*time.Second, 20*time.Second
	if testing.Short() && !leads { // the state's age grows from the start
		lasts, after = 15*time.Second, 8*time.Second
	}
	tr.on.Store(true)
	slow.slow(tr.sync)
	watch(lasts)
	if s := r.Status(); !leads && s.Serving {
		t.Errorf("a server whose state is %v old serves: %+v", worst, s)
	}
	tr.on.Store(false)
	slow.slow(0)
	watch(after)
	close(stop)
	writers.Wait()
	t.Logf("the state was up to %v old, and up to %v while it was served", worst, served)
	if served > limit {
		t.Errorf("a read that is %v old was served, bound %v", served, limit)
	}
	if worst < limit {
		t.Error("the state was never too old: this shows nothing")
	}
	if !r.Status().Serving {
		t.Errorf("it does not serve again: %+v", r.Status())
	}
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	turns := 0
	for i, s := range r.recorder.states {
		if i > 0 && s.Serving != r.recorder.states[i-1].Serving {
			turns++
		}
	}
	if turns > 9 {
		t.Errorf("the status went to and fro %d times: %+v", turns, r.recorder.states)
	}
}

// TestALeaderIsFreshFromTheFirst: a new leader is fresh although it commits faster than
// it applies from the start.
func TestALeaderIsFreshFromTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &trouble{delays: delays{apply: 100 * time.Millisecond}}
		slow.on.Store(true)
		c := newCluster(t, 3)
		for _, m := range c.list {
			c.start(m.ID, func(cfg *Config) {
				cfg.TickTime, cfg.SyncLimit = time.Second, 5
				cfg.Handler = slowApplier{cfg.Handler.(*recorder), slow}
			})
		}
		_, lead := c.leader()
		for range 10 {
			if err := lead.Propose(&command.Command{Kind: command.KindAttach, Op: proto.OpCreateSession, Timeout: 30_000}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if age := time.Since(lead.Fresh()); age >= 5*time.Second {
			t.Errorf("a leader that serves has a state of age %v", age)
		}
	})
}

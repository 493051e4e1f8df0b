package chaos

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// If a server has lost the ensemble, it should not serve the client that held a lock once
// another server may have told the next owner that it holds the lock. To judge that
// regardless of the machine's speed, we look at requests that the old holder sent after the next
// owner had received its reply: their replies must be later.

// lockSession is the timeout of the old holder's session.
const lockSession = 6 * time.Second

// asking is a client that sends requests all the time, without waiting for
// replies.
type asking struct {
	c *process.Client

	mu       sync.Mutex
	sent     map[int32]time.Time // by xid
	answered []exchange
	closed   chan struct{} // by the server
}

// exchange is a request that was answered.
type exchange struct{ sent, answered time.Time }

// ask starts to send reads of the lock and pings, every few milliseconds.
func ask(c *process.Client, lock string) *asking {
	a := &asking{c: c, sent: map[int32]time.Time{}, closed: make(chan struct{})}
	go a.read()
	go a.write(lock)
	return a
}

func (a *asking) write(lock string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	reqs := []process.Request{{Op: proto.OpPing}, {Op: proto.OpGetData, Record: &proto.GetDataRequest{Path: lock}}}
	for xid := int32(1); ; xid++ {
		a.mu.Lock()
		a.sent[a.c.Xid()+1] = time.Now()
		a.mu.Unlock()
		if a.c.Send(reqs[xid%2]) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-a.closed:
			return
		}
	}
}

func (a *asking) read() {
	defer close(a.closed)
	for {
		r, err := a.c.Receive()
		if err != nil {
			return
		}
		if r.Err != proto.Ok {
			continue
		}
		a.mu.Lock()
		a.answered = append(a.answered, exchange{a.sent[r.Xid], time.Now()})
		a.mu.Unlock()
	}
}

// sentAfter counts answered requests that were sent after a time, receivedAfter
// requests that were answered after it.
func (a *asking) sentAfter(at time.Time) int {
	return a.count(func(e exchange) bool { return e.sent.After(at) })
}

func (a *asking) receivedAfter(at time.Time) int {
	return a.count(func(e exchange) bool { return e.answered.After(at) })
}

func (a *asking) count(f func(exchange) bool) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.answered {
		if f(e) {
			n++
		}
	}
	return n
}

// awaitClosed waits until the server has closed the connection.
func (a *asking) awaitClosed(t *testing.T) {
	t.Helper()
	select {
	case <-a.closed:
	case <-time.After(patience):
		t.Error("the old holder's connection was never closed")
	}
}

// acquire acquires the lock through a server as soon as it is free, and returns when the new owner
// received its reply. Writes in flight during an election have no reply.
func acquire(m *Member, lock string) (time.Time, error) {
	mine := fmt.Sprintf("the next owner, at server %d", m.ID)
	var learned time.Time
	err := wait.Success(patience, fmt.Sprintf("a client at server %d gets the lock", m.ID), func() error {
		c, err := process.Connect(m.ClientAddr(), 0, nil, 30*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		for {
			if err := c.Create(lock, []byte(mine), proto.ModePersistent); err != nil && !errors.Is(err, proto.ErrNodeExists) {
				return err
			}
			data, _, err := c.Get(lock)
			if string(data) == mine {
				learned = time.Now()
				return nil
			}
			if err != nil && !errors.Is(err, proto.ErrNoNode) {
				return err
			}
		}
	})
	return learned, err
}

// holding is a lock with its holder on one server and the next owner on another.
type holding struct {
	t        *testing.T
	s        *scene
	old, new *Member
	holder   *asking
	lock     string
}

// hold gives a lock to a client of the leader or of a follower.
func hold(t *testing.T, c *Cluster, lock string, atLeader bool) *holding {
	t.Helper()
	leader, _, err := c.Leader()
	must.Do(t, err)
	old, next := c.Others(leader)[0], c.Others(leader)[1]
	if atLeader {
		old = leader
	}
	client := old.connect(t, lockSession)
	must.Do(t, client.Create(lock, []byte("the old holder"), proto.ModeEphemeral))
	h := &holding{t: t, s: &scene{Cluster: c, done: make(chan struct{})}, old: old, new: next, lock: lock, holder: ask(client, lock)}
	must.Do(t, c.Await("the holder asks", patience, func([]Status) bool { return h.holder.receivedAfter(time.Time{}) > 10 }))
	return h
}

// passes waits until the lock has passed on, and returns when its next owner received the event.
func (h *holding) passes() (free time.Time) {
	h.t.Helper()
	free = must.Get(acquire(h.new, h.lock))(h.t)
	h.t.Logf("server %d has given %s to another", h.new.ID, h.lock)
	return free
}

// judge checks the old holder's requests.
func (h *holding) judge(free time.Time) {
	h.t.Helper()
	h.holder.awaitClosed(h.t)
	if n := h.holder.sentAfter(free); n > 0 {
		h.t.Errorf("server %d has answered %d requests of the old holder after server %d had given the lock to another", h.old.ID, n, h.new.ID)
	}
}

// TestCutOffHolders cuts off a server with its clients.
func TestCutOffHolders(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, atLeader := range []bool{false, true} {
		h := hold(t, c, fmt.Sprintf("/cut-%v", atLeader), atLeader)
		h.s.cut([]*Member{h.old}, c.Others(h.old))
		h.judge(h.passes())
		must.Do(t, h.s.healed())
	}
}

// TestStoppedHolders stops the leader and a follower for 30 s. They find the
// requests of that time when they resume.
func TestStoppedHolders(t *testing.T) {
	t.Parallel()
	c := startServers(t, 5)
	all := []*holding{hold(t, c, "/stopped-follower", false), hold(t, c, "/stopped-leader", true)}
	free := make([]time.Time, len(all))
	stopped := make(chan error, 1)
	go func() { stopped <- all[0].s.pause(30*time.Second, 30*time.Second, all[0].old, all[1].old) }()
	must.Do(t, c.Await("they are stopped", patience, func([]Status) bool {
		return all[0].old.running().Frozen() && all[1].old.running().Frozen()
	}))
	for i, h := range all {
		free[i] = h.passes()
	}
	must.Do(t, <-stopped)
	resumed := time.Now().Add(-time.Second) // it was at the end of those 30 s
	for i, h := range all {
		h.judge(free[i])
		if n := h.holder.receivedAfter(resumed); n > 0 && free[i].Before(resumed) {
			t.Errorf("server %d went on and answered %d requests of the old holder", h.old.ID, n)
		}
	}
	must.Do(t, c.AwaitHealthy())
}

// TestRemovedWhileCutOff checks that a server that is removed from the ensemble
// and cannot be notified stops serving all the same, also clients with long sessions.
func TestRemovedWhileCutOff(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	h := hold(t, c, "/removed", false)
	long := ask(h.old.connect(t, 40*time.Second), "/")
	h.s.cut([]*Member{h.old}, c.Others(h.old))
	cut := time.Now()
	must.Do(t, h.s.reconfigure(h.old, false))
	h.judge(h.passes())
	long.awaitClosed(t)
	// Five ticks of two seconds, and one second for requests in flight.
	if n := long.sentAfter(cut.Add(11 * time.Second)); n > 0 {
		t.Errorf("%d requests were answered more than syncLimit after the cut", n)
	}
	must.Do(t, c.Await("the removed server says that it does not serve", patience, func(states []Status) bool {
		return states[h.old.ID-1].Mode == ""
	}))
	h.s.net.heal()
	must.Do(t, h.s.reconfigure(h.old, true))
	must.Do(t, c.AwaitHealthy())
}

package raftfsm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// slowLink is a network with a slow link to one host.
type slowLink struct {
	quorum.Network
	to   string
	rate int // bytes per second
}

func (n slowLink) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	if host, _, _ := net.SplitHostPort(addr); err != nil || host != n.to {
		return c, err
	}
	return slowConn{c, n.rate}, nil
}

type slowConn struct {
	net.Conn
	rate int
}

func (c slowConn) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(c.rate))
	return c.Conn.Write(b)
}

// fillUp creates n znodes of 256 KiB each, and returns the time of the slowest one.
func (r *rig) fillUp(name string, n int) (slowest time.Duration) {
	r.t.Helper()
	s := r.attach(time.Hour)
	data := make([]byte, 256<<10)
	for i := range n {
		before := time.Now()
		c := write(s, proto.OpCreate2, &proto.CreateRequest{Path: fmt.Sprintf("/%s%d", name, i), Data: data, ACL: proto.OpenACL()})
		if o := r.do(c); o.code != proto.Ok {
			r.t.Fatalf("%+v", o)
		}
		slowest = max(slowest, time.Since(before))
	}
	return slowest
}

// TestSlowPeer cuts off one follower while 32 MiB are written, and reconnects it over a
// link of 1 MB/s. The follower catches up in messages that arrive in time, and no other
// server waits for it.
func TestSlowPeer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const slow = 1
		large := cost.InShort(40, 128)
		c := newCluster(t, 3).onDisk()
		for _, m := range c.list {
			c.start(m.ID, func(cfg *Config) { cfg.Peers.Network = slowLink{cfg.Peers.Network, hostOf(slow), 1 << 20} })
		}
		for _, r := range c.rigs {
			r.awaitServed()
		}
		lead, l := c.leader() // the highest id
		if lead == slow {
			t.Fatal("the slow server leads")
		}
		c.net.Partition([]string{hostOf(slow)}, []string{hostOf(2), hostOf(3)})
		if d := l.fillUp("held", large); d > 100*time.Millisecond {
			t.Errorf("a write took %v with one server out of reach", d)
		}
		c.net.Rejoin([]string{hostOf(slow)}, []string{hostOf(2), hostOf(3)})
		if d := l.fillUp("slow", 10); d > 100*time.Millisecond {
			t.Errorf("a write took %v with one server on a slow link", d)
		}
		before := time.Now()
		for !c.rigs[slow].exists("/slow9") {
			if time.Since(before) > 5*time.Minute {
				t.Fatal("it does not catch up")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if now, _ := c.leader(); now != lead {
			t.Errorf("the lead has changed to server %d", now)
		}
	})
}

// digest represents a state that is too large for a dump.
func (r *rig) digest() uint64 {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	return r.Tree().FullDigest()
}

// heap returns the bytes in use after garbage collection.
func heap() int {
	runtime.GC()
	runtime.GC() // collects what pools have released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestSnapshotIsStreamed installs a large snapshot over a slow link: neither the leader
// nor the follower has the whole snapshot in memory. The test doesn't run in parallel
// with others, because it measures the heap.
func TestSnapshotIsStreamed(t *testing.T) { //nolint:paralleltest // see above
	cost.MeasuresMemory(t)
	synctest.Test(t, func(t *testing.T) {
		const slow, large = 1, 128 // of 256 KiB: 32 MiB
		c := newCluster(t, 3).onDisk()
		for _, m := range c.list {
			c.start(m.ID, func(cfg *Config) { cfg.Peers.Network = slowLink{cfg.Peers.Network, hostOf(slow), 1 << 20} })
		}
		for _, r := range c.rigs {
			r.awaitServed()
		}
		_, l := c.leader()
		c.net.Partition([]string{hostOf(slow)}, []string{hostOf(2), hostOf(3)})
		l.fillUp("large", large)
		c.rigs[2].compact()
		c.rigs[3].compact()
		before, most := heap(), 0
		f := c.rigs[slow]
		c.net.Rejoin([]string{hostOf(slow)}, []string{hostOf(2), hostOf(3)})
		for jumped := false; !jumped; {
			time.Sleep(2 * time.Second)
			f.mu.Lock()
			jumped = f.jumped > 0
			f.mu.Unlock()
			if !jumped {
				most = max(most, heap())
			}
		}
		if most == 0 || most-before > 12<<20 {
			t.Errorf("%d MiB more in memory while a snapshot of 32 MiB was on its way", (most-before)>>20)
		}
		c.eventually("the follower has caught up", func() bool { return f.exists(fmt.Sprintf("/large%d", large-1)) })
		if d := l.fillUp("after", 1); d > 100*time.Millisecond {
			t.Errorf("a write took %v", d)
		}
		c.eventually("the same state on all servers", func() bool {
			return c.rigs[1].digest() == c.rigs[2].digest() && c.rigs[2].digest() == c.rigs[3].digest()
		})
	})
}

// TestRestoreFreesFirst: the old tree is freed before the new one is complete. The test
// doesn't run in parallel with others, because it measures the heap.
func TestRestoreFreesFirst(t *testing.T) { //nolint:paralleltest // see above
	cost.MeasuresMemory(t)
	r := newReplica(t)
	l := newLeader(5, 0)
	r.mustFeed(t, l.begin())
	r.mustFeed(t, l.batch(attachCommand()))
	data := make([]byte, 256<<10)
	for i := range 128 {
		r.mustFeed(t, l.batch(write(firstSession(), proto.OpCreate2,
			&proto.CreateRequest{Path: fmt.Sprintf("/large%d", i), Data: data, ACL: proto.OpenACL()})))
	}
	b := r.snapshot(t)
	r.index-- // so that the snapshot is newer
	r.Machine.Index--
	r.recorder.applied = nil // these results contain the written data
	before := heap()
	end := &atTheEnd{Reader: bytes.NewReader(b), at: len(b) - 100, then: heap}
	if err := r.Machine.Restore(io.NopCloser(end)); err != nil {
		t.Fatal(err)
	}
	if more := end.got - before; end.got == 0 || more > 8<<20 {
		t.Errorf("restoring 32 MiB takes %d MiB more", more>>20)
	}
}

// atTheEnd is a reader that calls then when most of the data was read.
type atTheEnd struct {
	*bytes.Reader
	at, got int
	then    func() int
}

func (r *atTheEnd) Read(b []byte) (int, error) {
	if r.got == 0 && int(r.Size())-r.Len() >= r.at-64<<10 {
		r.got = r.then()
	}
	return r.Reader.Read(b)
}

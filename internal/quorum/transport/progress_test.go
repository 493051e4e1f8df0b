package transport

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

// applied makes the leader commit an entry and returns the duration.
func applied(t *testing.T, leader *node, s string) time.Duration {
	t.Helper()
	began := time.Now()
	if err := leader.raft.Apply([]byte(s), 0).Error(); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return time.Since(began)
}

// TestForgottenConnectionsAreReplaced makes the network drop a leader's established
// connections, in one direction of dialling or all. The next entry should be committed
// after a stall limit, and the leader should stay.
func TestForgottenConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]func(leader, dialer, acceptor string) bool{
		"the leader's own":  func(l, d, _ string) bool { return d == l },
		"all of the leader": func(l, d, a string) bool { return d == l || a == l },
		"all":               func(string, string, string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := quorum.NewMemory()
				nodes := startRaft(t, m, 3, nil)
				leader := leaderOf(t, nodes)
				term := leader.raft.CurrentTerm()
				applied(t, leader, "before")
				for range 3 {
					time.Sleep(10 * time.Second)
					if m.Forget(func(d, a string) bool { return match(leader.host, d, a) }) == 0 {
						t.Fatal("no connections were forgotten")
					}
					if took := applied(t, leader, "after"); took > defaultStall+100*time.Millisecond {
						t.Errorf("an entry took %v", took)
					}
				}
				if now := leader.raft.CurrentTerm(); now != term {
					t.Errorf("the leader of term %d is in term %d", term, now)
				}
			})
		})
	}
}

// TestForgottenConnectionsDoNotDelayElections: even if all old connections of a candidate
// are dead, it should win its first election.
func TestForgottenConnectionsDoNotDelayElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		nodes := startRaft(t, m, 5, nil)
		leader := leaderOf(t, nodes)
		applied(t, leader, "before")
		time.Sleep(time.Second)
		m.Forget(func(string, string) bool { return true })
		m.Kill(leader.host)
		began := time.Now()
		var rest []*node
		for _, n := range nodes {
			if n != leader {
				rest = append(rest, n)
			}
		}
		next := leaderOf(t, rest)
		applied(t, next, "after")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v to commit an entry", took)
		}
	})
}

// throttled is a network that slows down the data sent by one host.
type throttled struct {
	quorum.Network
	rate int // bytes per second
}

func (n throttled) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return throttledConn{c, n.rate}, nil
}

type throttledConn struct {
	net.Conn
	rate int
}

func (c throttledConn) Write(p []byte) (int, error) {
	const packet = 1400
	for sent := 0; sent < len(p); {
		n := min(packet, len(p)-sent)
		time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
		k, err := c.Conn.Write(p[sent : sent+n])
		if sent += k; err != nil {
			return sent, err
		}
	}
	return len(p), nil
}

// pair returns a single sender, and a receiver that answers as handle says.
func pair(t *testing.T, net1 quorum.Network, m *quorum.Memory, handle func(raft.RPC)) *Transport {
	t.Helper()
	hub2 := newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard)
	receiver := New(Config{Hub: hub2, ID: "2", Addr: "s2:1"})
	t.Cleanup(func() { receiver.Close() })
	go func() {
		for {
			select {
			case rpc := <-receiver.Consumer():
				handle(rpc)
			case <-receiver.ctx.Done():
				return
			}
		}
	}()
	hub1, err := quorum.Listen(net1, "s1:1", quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, quorum.Security{}, discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub1.Close() })
	sender := New(Config{Hub: hub1, ID: "1", Addr: "s1:1"})
	t.Cleanup(func() { sender.Close() })
	return sender
}

func bigRequest(size int) *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("1"), Addr: []byte("1")},
		Term: 3, PrevLogEntry: 4, PrevLogTerm: 3, Entries: []*raft.Log{{Index: 5, Term: 3, Data: make([]byte, size)}}}
}

// TestSlowIsNotStalled sends 4 MB over a link of 400 kbit/s. The server's disk then needs
// half a minute. Both make progress, so the request should succeed.
func TestSlowIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		var requests atomic.Int32
		tr := pair(t, throttled{m.Host("s1"), 50_000}, m, func(rpc raft.RPC) {
			requests.Add(1)
			if s, ok := rpc.Command.(*raft.InstallSnapshotRequest); ok {
				// It reads 16 KiB every two seconds.
				buf := make([]byte, 16<<10)
				for {
					if _, err := io.ReadFull(rpc.Reader, buf); err != nil {
						break
					}
					time.Sleep(2 * time.Second)
				}
				rpc.Respond(&raft.InstallSnapshotResponse{Term: s.Term, Success: true}, nil)
				return
			}
			time.Sleep(30 * time.Second)
			rpc.Respond(&raft.AppendEntriesResponse{Term: 3, Success: true}, nil)
		})
		var resp raft.AppendEntriesResponse
		if err := tr.AppendEntries("2", "s2:1", bigRequest(4<<20), &resp); err != nil || !resp.Success {
			t.Errorf("entries: %v", err)
		}
		data := make([]byte, 12<<20) // more than the socket buffers
		var installed raft.InstallSnapshotResponse
		err := tr.InstallSnapshot("2", "s2:1", snapshotAt(9, int64(len(data))), &installed, bytes.NewReader(data))
		if err != nil || !installed.Success {
			t.Errorf("snapshot: %v", err)
		}
		if n := requests.Load(); n != 2 {
			t.Errorf("%d requests arrived", n)
		}
	})
}

// TestStalledRequestEnds: a request that makes no progress should end after the limit,
// wherever it gets stuck, and so should the receiver's end of the connection.
func TestStalledRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		tr := pair(t, m.Host("s1"), m, func(rpc raft.RPC) {
			time.Sleep(10 * time.Millisecond)
			rpc.Respond(&raft.AppendEntriesResponse{Term: 3, Success: true}, nil)
		})
		send := func(size int) (time.Duration, error) {
			began := time.Now()
			var resp raft.AppendEntriesResponse
			err := tr.AppendEntries("2", "s2:1", bigRequest(size), &resp)
			return time.Since(began), err
		}
		var wg sync.WaitGroup
		for range 3 { // concurrently, so that there are three connections
			wg.Go(func() {
				if _, err := send(10); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for what, size := range map[string]int{"before it arrives": 10, "in the middle": 16 << 20} {
			m.Forget(func(string, string) bool { return true })
			if took, err := send(size); err == nil || took > defaultStall+time.Millisecond {
				t.Errorf("%s: it ended after %v: %v", what, took, err)
			}
			began := time.Now()
			for { // the others are closed already, and fail immediately
				if _, err := send(10); err == nil || time.Since(began) > time.Minute {
					break
				}
			}
			if took := time.Since(began); took > 20*time.Millisecond {
				t.Errorf("%s: the next took %v", what, took)
			}
		}
		time.Sleep(3 * idleLimit)
		open := 0
		m.Connections(func(string, string) { open++ })
		if open != 0 {
			t.Errorf("%d connections are left over when nothing was sent for long", open)
		}
	})
}

// TestVoteOverADeadConnection: if a vote request gets stuck on an old connection, we should
// repeat it on a new one, within the same election.
func TestVoteOverADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		tr := pair(t, m.Host("s1"), m, func(rpc raft.RPC) {
			rpc.Respond(&raft.RequestVoteResponse{Term: 3, Granted: true}, nil)
		})
		ask := func() (time.Duration, error) {
			began := time.Now()
			var resp raft.RequestVoteResponse
			err := tr.RequestVote("2", "s2:1", &raft.RequestVoteRequest{Term: 3, RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("1"), Addr: []byte("1")}}, &resp)
			return time.Since(began), err
		}
		if _, err := ask(); err != nil {
			t.Fatal(err)
		}
		m.Forget(func(string, string) bool { return true })
		if took, err := ask(); err != nil || took > defaultHeartbeatStall {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestHeartbeatAfterADeadConnection: after a heartbeat that got stuck, the next one
// should get through, however many other connections were dead, too.
func TestHeartbeatAfterADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		answer := make(chan struct{})
		tr := pair(t, m.Host("s1"), m, func(rpc raft.RPC) {
			<-answer
			rpc.Respond(&raft.AppendEntriesResponse{Term: 3, Success: true}, nil)
		})
		beat := func() error {
			return tr.AppendEntries("2", "s2:1", &raft.AppendEntriesRequest{Term: 3, RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("1"), Addr: []byte("1")}}, new(raft.AppendEntriesResponse))
		}
		var all sync.WaitGroup
		for range maxPool { // at the same time, so that each needs a separate connection
			all.Go(func() {
				if err := beat(); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(answer)
		all.Wait()
		time.Sleep(time.Second)
		if n := m.Forget(func(string, string) bool { return true }); n < maxPool {
			t.Fatalf("only %d connections were forgotten", n)
		}
		if err := beat(); err == nil {
			t.Fatal("a heartbeat got through a dead connection")
		}
		began := time.Now()
		if err := beat(); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestReceiverForgetsIdleStreams: the sender has silently vanished.
func TestReceiverForgetsIdleStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		hub := newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard)
		tr := New(Config{Hub: hub, ID: "2", Addr: "s2:1"})
		defer tr.Close()
		from := newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard)
		conn, _, err := from.Dial(t.Context(), quorum.Raft, "s2:1", "2")
		if err != nil {
			t.Fatal(err)
		}
		open := func() int {
			tr.links.mu.Lock()
			defer tr.links.mu.Unlock()
			return len(tr.links.conns)
		}
		time.Sleep(time.Second)
		if open() != 1 {
			t.Fatalf("%d connections", open())
		}
		m.Forget(func(string, string) bool { return true })
		time.Sleep(3 * idleLimit)
		if n := open(); n != 0 {
			t.Errorf("%d connections are left over", n)
		}
		_ = conn.Close()
	})
}

// TestOldServersGetNoSignsOfLife: a server of an earlier release would mistake working
// bytes for the response.
func TestOldServersGetNoSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		hub := newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard)
		tr := New(Config{Hub: hub, ID: "2", Addr: "s2:1"})
		defer tr.Close()
		go func() { <-tr.Consumer() }() // receives the request and never answers
		message := bytes.NewBuffer([]byte{rpc.RequestPreVote})
		if err := codec.NewEncoder(message, new(codec.MsgpackHandle)).Encode(&raft.RequestPreVoteRequest{RPCHeader: headerOf("1"), Term: 2}); err != nil {
			t.Fatal(err)
		}
		from := newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard)
		for beats, want := range map[bool]int{false: 0, true: 5} {
			hub.Handle(quorum.Raft, func(conn net.Conn, from quorum.Identity) {
				from.Beats = beats
				tr.links.accept(conn, from)
			})
			conn, _, err := from.Dial(t.Context(), quorum.Raft, "s2:1", "2")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = conn.Write(message.Bytes())
			_ = conn.SetReadDeadline(time.Now().Add(defaultStall + 10*time.Millisecond))
			got, _ := io.ReadAll(conn)
			if n := bytes.Count(got, []byte{working}); n != want || n != len(got) {
				t.Errorf("beats %t: %x before the response", beats, got)
			}
			_ = conn.Close()
		}
	})
}

// TestFollowerIsServedWhenItIsBack silently cuts off a follower for various times.
// Entries should reach it as soon as it is back.
func TestFollowerIsServedWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		nodes := startRaft(t, m, 3, nil)
		leader := leaderOf(t, nodes)
		var f *node
		rest := []string{}
		for _, n := range nodes {
			if n != leader && f == nil {
				f = n
			} else {
				rest = append(rest, n.host)
			}
		}
		for _, away := range []time.Duration{2, 22, 25, 60, 120} {
			m.Partition([]string{f.host}, rest)
			time.Sleep(500 * time.Millisecond)
			text := (away * time.Second).String()
			applied(t, leader, text)
			time.Sleep(away * time.Second)
			m.Rejoin([]string{f.host}, rest)
			began := time.Now()
			f.fsm.waitFor(t, text)
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("away for %v: the entries came %v after it was back", away*time.Second, took)
			}
		}
	})
}

package server

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// narrow is a network that, once on is set, delays large writes to one host; small
// writes pass.
type narrow struct {
	quorum.Network
	host string
	rate int // bytes per second
	on   *atomic.Bool
}

func (n narrow) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	if err != nil || !strings.HasPrefix(addr, n.host+":") {
		return c, err
	}
	return narrowConn{c, n}, nil
}

type narrowConn struct {
	net.Conn
	n narrow
}

func (c narrowConn) Write(b []byte) (int, error) {
	if c.n.on.Load() && len(b) > 200 {
		time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(c.n.rate))
	}
	return c.Conn.Write(b)
}

// A follower that receives entries more slowly than they are written closes its clients
// while their reads are still within the age bound. It accepts no new clients until it
// has caught up.
func TestALaggingFollowerReleasesItsClients(t *testing.T) {
	var on atomic.Bool
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, _ := e.leader()
		s := e.servers[0]
		if s == leader {
			t.Fatal("the server on the slow link leads")
		}
		const timeout = 30 * time.Second // syncLimit × tickTime is the shorter bound
		reader, writer := short(t, s, timeout), short(t, leader, timeout)
		writer.create("/n", make([]byte, 1100), proto.ModePersistent)
		awaitNode(t, s, "/n", true)
		on.Store(true)
		stop, stopped := make(chan struct{}), make(chan struct{})
		acked := []time.Time{time.Now()}
		go func() {
			defer close(stopped)
			for version := int32(0); ; version++ {
				writer.must(proto.OpSetData, &proto.SetDataRequest{Path: "/n", Data: make([]byte, 1100), Version: version})
				acked = append(acked, time.Now())
				select {
				case <-stop:
					return
				case <-time.After(9 * time.Millisecond):
				}
			}
		}()
		type read struct {
			at      time.Time
			version int32
		}
		var reads []read
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal("the client is served for a minute")
			}
			if _, err := reader.nc.Write(appendRequest(nil, 1, proto.OpExists, &proto.ExistsRequest{Path: "/n"})); err != nil {
				break
			}
			frame, err := reader.frame()
			if err != nil {
				break
			}
			r := proto.NewReader(frame)
			var h proto.ReplyHeader
			var resp proto.ExistsResponse
			h.Decode(&r)
			resp.Decode(&r)
			reads = append(reads, read{time.Now(), resp.Stat.Version})
		}
		eventually(t, "the server takes no new clients", func() bool { now, _ := s.modes.get(); return now == notServing })
		if w := dial(t, s); true {
			w.write(connectFrame(timeout))
			w.wantClosed()
		}
		on.Store(false)
		eventually(t, "it serves again", func() bool { now, _ := s.modes.get(); return now == serving })
		close(stop)
		<-stopped
		var oldest time.Duration
		for _, r := range reads {
			if next := int(r.version) + 1; next < len(acked) && acked[next].Before(r.at) {
				oldest = max(oldest, r.at.Sub(acked[next]))
			}
		}
		t.Logf("%d reads, the oldest %v old", len(reads), oldest)
		if bound := 5 * time.Second; oldest > bound || oldest < bound/2 {
			t.Errorf("the oldest read was %v old, bound %v", oldest, bound)
		}
		short(t, s, timeout).must(proto.OpPing, nil)
		if r := s.node.Status().Role; r != raftfsm.Follower {
			t.Errorf("it is %v", r)
		}
	}, func(c *Config) {
		c.TickTime = time.Second
		c.Env.Network = narrow{c.Env.Network, host(1), 400_000 / 8, &on}
	})
}

// connectFrame returns a connect request for a new session.
func connectFrame(timeout time.Duration) []byte {
	out, mark := proto.BeginFrame(nil)
	req := proto.ConnectRequest{TimeOut: int32(timeout / time.Millisecond), Passwd: make([]byte, proto.PasswordSize)}
	return proto.EndFrame(req.Append(out), mark)
}

// A server that can't give a client a session should close the connection immediately,
// whatever the reason, so that the client has time for another server.
func TestServerWithoutQuorumClosesClients(t *testing.T) {
	for name, tc := range map[string]struct {
		fail   func(e *ensemble) *Server // returns the server to connect to
		within time.Duration
	}{
		"the other servers were stopped": {func(e *ensemble) *Server {
			for _, s := range e.servers[1:] {
				s.Close()
			}
			return e.servers[0]
		}, 10 * time.Millisecond},
		"a follower is cut off": {func(e *ensemble) *Server {
			_, others := e.leader()
			e.cutOff(others[0])
			return others[0]
		}, 10 * time.Millisecond},
		"the leader is cut off": {func(e *ensemble) *Server {
			leader, _ := e.leader()
			e.cutOff(leader)
			return leader
		}, 10 * time.Millisecond},
		"a follower is removed": {func(e *ensemble) *Server {
			leader, others := e.leader()
			w := short(e.t.(*testing.T), leader, 30*time.Second)
			id := strconv.FormatUint(others[0].cfg.Quorum.ID, 10)
			w.must(proto.OpReconfig, &proto.ReconfigRequest{Joining: proto.NullString, Leaving: id, NewMembers: proto.NullString, CurConfigID: -1})
			eventually(e.t, "it knows that it was removed", func() bool { now, _ := others[0].modes.get(); return now == notServing })
			return others[0]
		}, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				s := tc.fail(e)
				const timeout = 30 * time.Second
				// Soon after, while the server may still believe that it serves.
				if took := turnedAway(t, s, timeout); took > 2*time.Second {
					t.Errorf("a client waits for %v right after the loss", took)
				}
				time.Sleep(6 * time.Second)
				for range 5 {
					if took := turnedAway(t, s, timeout); took > tc.within {
						t.Errorf("a client waits for %v", took)
					}
				}
			}, func(c *Config) { c.TickTime, c.Quorum.Reconfig, c.Auth.SkipACL = time.Second, true, true })
		})
	}
}

// cutOff cuts a server off from the others.
func (e *ensemble) cutOff(s *Server) {
	var rest []string
	for _, o := range e.servers {
		if o != s {
			rest = append(rest, hosts(o)...)
		}
	}
	e.net.Partition(hosts(s), rest)
	e.t.Cleanup(func() { e.net.Rejoin(hosts(s), rest) })
}

// turnedAway connects and returns the time until the server closes the connection.
func turnedAway(t *testing.T, s *Server, timeout time.Duration) time.Duration {
	t.Helper()
	w := dial(t, s)
	began := time.Now()
	w.write(connectFrame(timeout))
	w.wantClosed()
	return time.Since(began)
}

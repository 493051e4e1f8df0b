package raftfsm

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// namedNetwork is a network in which the host of server N has the address 10.0.0.N, which
// its name resolves to.
type namedNetwork struct {
	quorum.Network
	tcp *quorum.TCP
}

func (n namedNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.tcp.Dial(ctx, addr)
}
func (n namedNetwork) LookUp(addr string) { n.tcp.LookUp(addr) }
func (n namedNetwork) StopLookUps()       { n.tcp.StopLookUps() }

// dns is a name server. Each server has a separate resolver.
type dns struct{ delay atomic.Int64 }

func newDNS(t *testing.T) *dns {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // the last lookups end
	return new(dns)
}

// named makes a server dial the others by name.
func (d *dns) named(cfg *Config) {
	under := cfg.Peers.Network
	cfg.Peers.Network = namedNetwork{under, &quorum.TCP{
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			select {
			case <-time.After(time.Duration(d.delay.Load())):
				return []netip.Addr{netip.MustParseAddr("10.0.0." + strings.TrimPrefix(host, "s"))}, nil
			case <-ctx.Done():
				return nil, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
			}
		},
		Connect: func(ctx context.Context, addr string) (net.Conn, error) {
			return under.Dial(ctx, "s"+strings.TrimPrefix(addr, "10.0.0."))
		},
	}}
}

// TestLeaderIsReplacedWithoutDNS kills the leader while DNS is silent or slow. The other
// servers find each other as fast as with DNS, also if they have been restarted.
func TestLeaderIsReplacedWithoutDNS(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 1200 * time.Millisecond, time.Hour} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDNS(t)
				c := newCluster(t, 4).onDisk()
				c.list[0].Observer = true
				c.startAll(d.named)
				lead, _ := c.leader()
				for _, id := range []uint64{1, lead%3 + 2} { // the observer and a follower
					c.stop(id)
					c.start(id, d.named).awaitServed()
				}
				synctest.Wait()
				d.delay.Store(int64(delay))
				time.Sleep(time.Second)
				c.kill(lead)
				began := time.Now()
				c.eventually("every server serves", func() bool {
					for _, r := range c.rigs {
						if s := r.Status(); !s.Serving || s.Leader == lead {
							return false
						}
					}
					return true
				})
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("all servers served after %v", took)
				}
			})
		})
	}
}

// lookups is a network that counts the lookups ahead of a dial.
type lookups struct {
	quorum.Network
	mu  sync.Mutex
	all map[string]int
}

func (n *lookups) LookUp(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[addr]++
}

func (*lookups) StopLookUps() {}

// A server looks up the names of all others every 30 s, including servers that it has no
// reason to dial now.
func TestNamesAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.list[0].Alternates = []string{"p1:2888"}
		n := &lookups{all: make(map[string]int)}
		c.start(2, func(cfg *Config) { n.Network, cfg.Peers.Network = cfg.Peers.Network, n })
		time.Sleep(time.Minute - time.Second)
		n.mu.Lock()
		defer n.mu.Unlock()
		if want := map[string]int{"s1:2888": 2, "p1:2888": 2, "s3:2888": 2}; !maps.Equal(n.all, want) {
			t.Fatalf("looked up %v, want %v", n.all, want)
		}
	})
}

// TestFormsWithSlowDNS forms an ensemble although no attempt to connect is as long as a
// lookup.
func TestFormsWithSlowDNS(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDNS(t)
		d.delay.Store(int64(1200 * time.Millisecond))
		c := newCluster(t, 3)
		began := time.Now()
		c.startAll(d.named)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the servers served after %v", took)
		}
	})
}

// twoPaths is the network of a server with two addresses: sN and its alternate pN.
type twoPaths struct {
	m  *quorum.Memory
	id uint64
}

func (n twoPaths) host(addr string) quorum.Network {
	path, _, _ := net.SplitHostPort(addr)
	return n.m.Host(fmt.Sprint(path[:1], n.id))
}
func (n twoPaths) Listen(addr string) (net.Listener, error) { return n.host(addr).Listen(addr) }
func (n twoPaths) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.host(addr).Dial(ctx, addr)
}

// writesWithin creates a znode, and re-attaches the session whenever it has lost its
// connection. It reports whether that succeeded within limit.
func (r *rig) writesWithin(limit time.Duration, s *session.Session, path string, data []byte) bool {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	try := func(cmd command.Command) (o outcome, ok bool) {
		lost := r.lostCount()
		for ch := r.send(cmd); r.lostCount() == lost && time.Now().Before(deadline); {
			select {
			case o = <-ch:
				return o, true
			case <-time.After(10 * time.Millisecond):
			}
		}
		return o, false
	}
	for time.Now().Before(deadline) {
		o, ok := try(write(*s, proto.OpCreate2, &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}))
		if ok {
			return o.code == proto.Ok || o.code == proto.ErrNodeExists
		}
		if o, ok = try(command.Command{Kind: command.KindAttach, Session: s.ID, Timeout: s.Timeout, Password: s.Password}); ok {
			s.Gen = o.attached.Gen
		}
	}
	return false
}

// TestLossyPathIsLeft makes the first of two paths between all servers lose large packets.
// Every server uses the other one, and continues to use it.
func TestLossyPathIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		for i := range c.list {
			c.list[i].Alternates = []string{fmt.Sprintf("p%d:2888", c.list[i].ID)}
		}
		c.startAll(func(cfg *Config) {
			cfg.Peers.Network, cfg.Policy, cfg.TickTime = twoPaths{c.net, cfg.ID}, cfg.Policy|tree.MultiAddress, 2*time.Second
		})
		sessions := make(map[uint64]*session.Session)
		c.writesEverywhere(sessions, "/before")
		for _, a := range c.list {
			for _, b := range c.list {
				if a.ID != b.ID {
					c.net.Lose(hostOf(a.ID), hostOf(b.ID), 1000)
				}
			}
		}
		for i := range 10 {
			for id, r := range c.rigs {
				at := fmt.Sprintf("/large-%d-%d", i, id)
				if !r.writesWithin(grayBound(c), sessions[id], at, make([]byte, 4000)) {
					t.Fatalf("%s is not written within %v", at, grayBound(c))
				}
			}
			time.Sleep(time.Second)
		}
		c.settled()
		for id, r := range c.rigs {
			if !r.Status().Serving {
				t.Errorf("server %d: %+v", id, r.Status())
			}
		}
	})
}

// TestEveryAddressFollowsAReconfig changes the second address of a server, and then the
// first. The server listens at the new one and no longer at the old one, and keeps the
// address that both lines have.
func TestEveryAddressFollowsAReconfig(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes ten seconds and more; not with -short")
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		for i := range c.list {
			c.list[i].Alternates = []string{fmt.Sprintf("p%d:2888", c.list[i].ID)}
		}
		c.startAll(func(cfg *Config) {
			cfg.Peers.Network, cfg.Policy = twoPaths{c.net, cfg.ID}, cfg.Policy|tree.MultiAddress
		})
		id, f := c.follower()
		_, l := c.leader()
		admin := l.attach(time.Hour)
		listens := func(addr string) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			conn, err := c.net.Host("x").Dial(ctx, addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		}
		s, p := hostOf(id), fmt.Sprintf("p%d", id)
		for _, step := range []struct {
			line       string
			open, gone string
		}{
			{s + ":2888:3888|" + p + ":2999:3999", p + ":2999", p + ":2888"},
			{s + ":2777:3777|" + p + ":2999:3999", s + ":2777", s + ":2888"},
			{s + ":2777:3777", s + ":2777", p + ":2999"},
		} {
			line := fmt.Sprintf("server.%d=%s:participant;0.0.0.0:2181", id, step.line)
			if o := c.sure(l, &admin, func(s session.Session) command.Command { return reconfigure(s, line, "", "", -1) }); o.code != proto.Ok {
				t.Fatalf("%s: %+v", line, o)
			}
			c.eventually("it listens at "+step.open+" and not at "+step.gone, func() bool { return listens(step.open) && !listens(step.gone) })
			f.awaitServed()
			if !strings.Contains(step.line, "|") {
				continue
			}
			// The other servers reach it at either address.
			first, second, _ := strings.Cut(step.line, "|")
			for _, cut := range []string{first, second} {
				host, _, _ := strings.Cut(cut, ":")
				for _, m := range c.list {
					if m.ID != id {
						c.net.Hold(hostOf(m.ID), host)
						c.net.Hold(fmt.Sprintf("p%d", m.ID), host)
					}
				}
				time.Sleep(time.Minute)
				if s := f.Status(); !s.Serving {
					t.Errorf("%s, without %s: %+v", step.line, cut, s)
				}
				for _, m := range c.list {
					if m.ID != id {
						c.net.Heal(hostOf(m.ID), host)
						c.net.Heal(fmt.Sprintf("p%d", m.ID), host)
					}
				}
				time.Sleep(time.Minute)
			}
		}
		c.settled()
	})
}

// A server is asked at every address that it may have, although one address accepts
// connections and stays silent.
func TestSilentAddressIsPassedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		silent, err := c.net.Host("old").Listen("old:2888")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		lead, _ := c.leader()
		id, r := c.follower()
		e := r.member()
		server := raft.Server{ID: c.rigs[lead].replica.Identity.RaftID, Address: "old:2888"}
		if e.AskServer(server) == nil {
			t.Errorf("server %d has no answer from server %d", id, lead)
		}
		ctx, cancel := context.WithTimeout(t.Context(), ensemble.ProbeTimeout)
		defer cancel()
		conn, err := e.Dial(ctx, quorum.Forward, server.ID, "old:2888")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
}

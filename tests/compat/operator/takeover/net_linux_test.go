package takeover

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/netns"
)

// The names of the hosts that no server runs on. The clients run on this machine, and reach the
// servers from there.
const (
	front   = "front"   // the gates, in front of the old servers
	clients = "clients" // everything else that clients reach
)

// spaces is a network that gives each server its own network namespace.
type spaces struct {
	*netns.Net
	t     *testing.T
	hosts map[string]*netns.Host
}

var _ network = (*spaces)(nil)

func newSpaces(t *testing.T, seed uint64) *spaces {
	t.Helper()
	netns.Needed(t)
	s := &spaces{netns.New(seed), t, make(map[string]*netns.Host)}
	t.Cleanup(func() { _ = s.Close() })
	for _, name := range []string{front, clients} {
		s.hosts[name] = must.Get(s.Host(name))(t)
	}
	return s
}

func nameOf(side string, id int) string { return fmt.Sprint(side, id) }

// lines implements network.
func (s *spaces) lines(side string, n int) []string {
	lines := []string{"clientPort=2181", "clientPortAddress=0.0.0.0"}
	for id := 1; id <= n; id++ {
		h := must.Get(s.Host(nameOf(side, id)))(s.t)
		s.hosts[h.Name()] = h
		lines = append(lines, fmt.Sprintf("server.%d=%v:2888:3888", id, h.Addr()))
	}
	return lines
}

// enter implements network.
func (s *spaces) enter(side string, id int) func() (bool, error) {
	return func() (bool, error) { return true, s.hosts[nameOf(side, id)].Enter() }
}

// door implements network.
func (s *spaces) door(addr, side string, id int) {
	g := gateAt(s.t, addr, s.port(side, id))
	g.dial = s.hosts[clients].Dial
}

// behind implements network.
func (s *spaces) behind(g *gate, id int) string {
	g.close()
	g.dial, g.target = s.hosts[front].Dial, s.port("old", id)
	_, port, err := net.SplitHostPort(g.addr)
	must.Do(s.t, err)
	addr := net.JoinHostPort(s.hosts[front].Addr().String(), port)
	g.listen = append(g.listen, func() (net.Listener, error) { return s.hosts[front].Listen(addr) })
	g.open(s.t)
	return addr
}

func (s *spaces) port(side string, id int) string {
	return fmt.Sprintf("%v:2181", s.hosts[nameOf(side, id)].Addr())
}

// The ways in which a link fails.
type failure int

const (
	silent failure = iota // no packet arrives
	mute                  // none arrives from the first side
	deaf                  // none arrives at the first side
	loud                  // every connection is reset soon after it began
	failures
)

func (f failure) String() string {
	return [...]string{"is cut off from", "is not heard by", "does not hear", "has its connections reset with"}[f]
}

// fail makes the links between two groups of hosts fail until repair.
func (s *spaces) fail(how failure, a, b []string) (repair func()) {
	if how == loud {
		return s.reset(a, b)
	}
	for _, x := range a {
		for _, y := range b {
			if how != deaf {
				s.Link(x, y).Cut()
			}
			if how != mute {
				s.Link(y, x).Cut()
			}
		}
	}
	return s.Heal
}

// reset resets all connections between two groups of hosts again and again.
func (s *spaces) reset(a, b []string) (repair func()) {
	between := make(map[[2]string]bool)
	for _, x := range a {
		for _, y := range b {
			between[[2]string{x, y}], between[[2]string{y, x}] = true, true
		}
	}
	once := func() {
		for _, c := range s.Conns() {
			if between[[2]string{c.From, c.To}] {
				s.Reset(c)
			}
		}
	}
	once()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
				once()
			}
		}
	}()
	return func() { stop(); <-ended }
}

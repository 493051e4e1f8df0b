package quorum

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// dns is a resolver for one name.
type dns struct {
	mu      sync.Mutex
	addr    string
	err     error
	delay   time.Duration
	lookups int // so far
	running int
}

func (d *dns) set(addr string, err error, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr, d.err, d.delay = addr, err, delay
}

func (d *dns) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	addr, err, delay := d.addr, d.err, d.delay
	d.lookups++
	if d.running++; d.running > 1 {
		panic("two lookups of one name at a time")
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.running--
		d.mu.Unlock()
	}()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
	}
	if err != nil {
		return nil, err
	}
	return []netip.Addr{netip.MustParseAddr(addr)}, nil
}

// namedNetwork returns a network with the addresses 10.0.0.1 and 10.0.0.2, which accept
// connections, and the resolver of the name zk2. All other addresses are silent.
func namedNetwork(t *testing.T) (*TCP, *dns) {
	m, d := NewMemory(), new(dns)
	hosts := map[string]string{"10.0.0.1:1": "b1:1", "10.0.0.2:1": "b2:1"}
	for _, h := range []string{"b1", "b2"} {
		ln, err := m.Host(h).Listen(h + ":1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
	}
	m.Hold("a", "silent")
	return &TCP{Resolve: d.resolve, Connect: func(ctx context.Context, addr string) (net.Conn, error) {
		if h := hosts[addr]; h != "" {
			return m.Host("a").Dial(ctx, h)
		}
		if addr == "10.0.0.3:1" {
			return nil, syscall.ECONNREFUSED
		}
		return m.Host("a").Dial(ctx, "silent:1")
	}}, d
}

// dialNamed dials zk2 and returns the host that accepted, and the duration of the dial.
func dialNamed(t *testing.T, n *TCP, limit time.Duration) (host string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	conn, err := n.Dial(ctx, "zk2:1")
	if took = time.Since(began); err != nil {
		return "", took, err
	}
	defer conn.Close()
	return conn.RemoteAddr().String(), took, nil
}

// While DNS is silent, fails or is slow, a server that has been dialled before is reached
// at its last known address. A poll leaves 300 ms for that.
func TestKnownAddressOutlivesDNS(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]struct {
		err   error
		delay time.Duration
	}{
		"silent":       {nil, time.Hour},
		"slow":         {nil, 1200 * time.Millisecond},
		"fails":        {&net.DNSError{Err: "server misbehaving", Name: "zk2", IsTemporary: true}, 0},
		"fails slowly": {&net.DNSError{Err: "server misbehaving", Name: "zk2", IsTemporary: true}, 5 * time.Second},
		"no such name": {&net.DNSError{Err: "no such host", Name: "zk2", IsNotFound: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, d := namedNetwork(t)
				d.set("10.0.0.1", nil, 0)
				if _, _, err := dialNamed(t, n, time.Second); err != nil {
					t.Fatal(err)
				}
				d.set("10.0.0.1", state.err, state.delay)
				for range 100 {
					if host, took, err := dialNamed(t, n, 300*time.Millisecond); host != "b1:1" || took > lookupPatience {
						t.Fatalf("%q after %v: %v", host, took, err)
					}
				}
				time.Sleep(2 * lookupLimit) // the last lookup ends
			})
		})
	}
}

// The attempts to reach a new server are shorter than a lookup, so the lookup should
// continue between them.
func TestLookupOutlivesTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, d := namedNetwork(t)
		d.set("10.0.0.1", nil, 1200*time.Millisecond)
		_, took, err := dialNamed(t, n, time.Second)
		if dns := (*net.DNSError)(nil); !errors.As(err, &dns) || !dns.IsTimeout || dns.Name != "zk2" || took != time.Second {
			t.Fatalf("the first attempt took %v: %v", took, err)
		}
		if host, took, err := dialNamed(t, n, time.Second); host != "b1:1" || took != 200*time.Millisecond {
			t.Fatalf("the second attempt reached %q after %v: %v", host, took, err)
		}
		if d.lookups != 1 {
			t.Fatalf("%d lookups", d.lookups)
		}
	})
}

// If a server returns with a new address, we should reach it immediately, or as soon as a
// slow lookup returns the address.
func TestNewAddressIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, d := namedNetwork(t)
		for _, x := range []struct {
			addr, host string
			delay      time.Duration
		}{{"10.0.0.1", "b1:1", 0}, {"10.0.0.2", "b2:1", 0}, {"10.0.0.9", "", 0}, {"10.0.0.1", "b1:1", 700 * time.Millisecond},
			{"10.0.0.9", "", 0}, {"10.0.0.2", "b2:1", 1200 * time.Millisecond}} {
			d.set(x.addr, nil, x.delay)
			began := time.Now()
			host, _, err := dialNamed(t, n, time.Second)
			if host == "" && x.delay > time.Second {
				host, _, err = dialNamed(t, n, time.Second)
			}
			if took := time.Since(began); host != x.host || x.host != "" && took != x.delay {
				t.Fatalf("%s: reached %q after %v: %v", x.addr, host, took, err)
			}
		}
	})
}

// A refused connection should prove that a server's process is gone only if the address is
// still the server's.
func TestRefusalAtAnAddressWithoutName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, d := namedNetwork(t)
		d.set("10.0.0.3", nil, 0)
		if _, _, err := dialNamed(t, n, time.Second); !Refused(err) {
			t.Fatal(err)
		}
		d.set("", &net.DNSError{Err: "server misbehaving", Name: "zk2"}, 0)
		if _, _, err := dialNamed(t, n, time.Second); !Refused(err) {
			t.Fatalf("DNS fails: %v", err)
		}
		d.set("", &net.DNSError{Err: "no such host", Name: "zk2", IsNotFound: true}, 0)
		_, _, err := dialNamed(t, n, time.Second)
		if dns := (*net.DNSError)(nil); Refused(err) || !errors.As(err, &dns) {
			t.Fatalf("the name is gone: %v", err)
		}
	})
}

func TestLookUpAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, d := namedNetwork(t)
		d.set("10.0.0.1", nil, 2*time.Second)
		if !LookUp(unwrapped{n}, "zk2:1") || LookUp(NewMemory().Host("a"), "zk2:1") {
			t.Fatal("only TCP has host names")
		}
		time.Sleep(3 * time.Second)
		d.set("", nil, time.Hour)
		if host, _, err := dialNamed(t, n, time.Second); host != "b1:1" {
			t.Fatalf("reached %q: %v", host, err)
		}
		time.Sleep(lookupLimit)
	})
}

type unwrapped struct{ Network }

func (u unwrapped) Unwrap() Network { return u.Network }

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	var n names
	var lookups atomic.Int32
	for i := range 2 * MaxNames {
		ctx, host := t.Context(), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()
		if got, _, err := n.find(ctx, host, func(context.Context, string) ([]netip.Addr, error) {
			lookups.Add(1)
			return []netip.Addr{netip.MustParseAddr(host)}, nil
		}); err != nil || !slices.Equal(got, []string{host}) {
			t.Fatal(got, err)
		}
	}
	if len(n.hosts) > MaxNames {
		t.Fatalf("%d names", len(n.hosts))
	}
}

func TestDialFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		open := 0
		dial := func(ctx context.Context, addr string) (net.Conn, error) {
			after, err := time.ParseDuration(addr)
			if err != nil {
				return nil, errors.New(addr)
			}
			select {
			case <-time.After(after):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			open++
			c, other := net.Pipe()
			return &closing{c, func() { open--; other.Close() }}, nil
		}
		for _, x := range []struct {
			addrs []string
			took  time.Duration
			errs  string
		}{
			{[]string{"50ms", "0s"}, 50 * time.Millisecond, ""},
			{[]string{"1h", "1h", "50ms"}, 250 * time.Millisecond, ""},
			{[]string{"bad", "1h", "50ms"}, 150 * time.Millisecond, ""},
			{[]string{"bad", "worse"}, 0, "bad\nworse"},
			{[]string{"1h", "bad"}, time.Second, "context deadline exceeded\nbad"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			conn, errs := DialFirst(ctx, x.addrs, 100*time.Millisecond, dial)
			if took := time.Since(began); took != x.took {
				t.Errorf("%v took %v", x.addrs, took)
			}
			if conn != nil {
				conn.Close()
			} else if got := errors.Join(errs...).Error(); got != x.errs {
				t.Errorf("%v: %s", x.addrs, got)
			}
			cancel()
			if (conn == nil) != (x.errs != "") || open != 0 {
				t.Errorf("%v: connection %v, %d left open", x.addrs, conn, open)
			}
		}
	})
}

// closing is a connection that counts itself as closed.
type closing struct {
	net.Conn
	closed func()
}

func (c *closing) Close() error { c.closed(); return c.Conn.Close() }

// If a server accepts connections but stays silent at one address, it should not use up the
// time for the next one.
func TestSilentAddressLeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		ln, err := m.Host("old").Listen("old:1")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		a := newHub(t, m, Identity{ServerID: "1", Cluster: ClusterID{1}}, t.Output())
		b := newHub(t, m, Identity{ServerID: "2", Cluster: ClusterID{1}}, t.Output())
		b.Handle(Raft, echo)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		conn, err := DialAny(ctx, a, Raft, Addresses("old:1", []string{"old:1", "s2:1"}), "2")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
}

// listensAt is a network that listens on another one.
type listensAt struct {
	*TCP
	on Network
}

func (l listensAt) Listen(addr string) (net.Listener, error) { return l.on.Listen(addr) }

// A lookup should outlive the call that has started it, but not the hub.
func TestCloseEndsLookups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, d := namedNetwork(t)
		d.set("", nil, time.Hour)
		h, err := Listen(unwrapped{listensAt{n, NewMemory().Host("a")}}, "a:1", Identity{}, Security{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.Dial(t.Context(), Probe, "zk2:1", "2"); err == nil {
			t.Error("dialled a name that has no address yet")
		}
		began := time.Now()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := h.Dial(t.Context(), Probe, "zk2:1", "2"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial after the close: %v", err)
		}
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.running != 0 || d.lookups != 1 || time.Since(began) != 0 {
			t.Errorf("%d of %d lookups are running, %v after the close", d.running, d.lookups, time.Since(began))
		}
	})
}

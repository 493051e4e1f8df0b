package quorum

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// hostNetwork is a host with several addresses, each of which has several names.
type hostNetwork struct {
	addrs map[string]string // by name

	mu   sync.Mutex
	open map[string]bool // by address and port
}

func (n *hostNetwork) Dial(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed }

func (n *hostNetwork) Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	at, mine := n.addrs[host]
	if !mine {
		return nil, syscall.EADDRNOTAVAIL
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	full := net.JoinHostPort(at, port)
	if n.open[full] {
		return nil, syscall.EADDRINUSE
	}
	n.open[full] = true
	return &hostListener{n: n, addr: full, done: make(chan struct{})}, nil
}

// listening returns the open ports.
func (n *hostNetwork) listening() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.open))
}

type hostListener struct {
	n    *hostNetwork
	addr string
	done chan struct{}
	once sync.Once
}

func (l *hostListener) Addr() net.Addr { return memAddr(l.addr) }

func (l *hostListener) Accept() (net.Conn, error) {
	<-l.done
	return nil, net.ErrClosed
}

func (l *hostListener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		delete(l.n.open, l.addr)
		close(l.done)
	})
	return nil
}

// When some of several addresses change, the others keep their listeners. If an
// address gets another name, its listener should move to it, and if we can't open one,
// the hub should still open the others.
func TestRelistenAtSeveralAddresses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		to      []string
		now     []string // nil: as in to
		open    []string
		failure error
	}{
		"one is replaced":             {to: []string{"a:1", "c:1"}, open: []string{"A:1", "C:1"}},
		"one is renamed":              {to: []string{"a2:1", "b:1"}, open: []string{"A:1", "B:1"}},
		"one renamed, one replaced":   {to: []string{"a2:1", "c:1"}, open: []string{"A:1", "C:1"}},
		"both renamed, in turn":       {to: []string{"b2:1", "a2:1"}, open: []string{"A:1", "B:1"}},
		"one is not of this host":     {to: []string{"a:1", "x:1"}, now: []string{"a:1", "b:1"}, open: []string{"A:1", "B:1"}, failure: syscall.EADDRNOTAVAIL},
		"one of two new ones fails":   {to: []string{"c:1", "x:1"}, now: []string{"c:1", "a:1", "b:1"}, open: []string{"A:1", "B:1", "C:1"}, failure: syscall.EADDRNOTAVAIL},
		"one is in use by another":    {to: []string{"a2:1", "d:1"}, now: []string{"a2:1", "b:1"}, open: []string{"A:1", "B:1"}, failure: syscall.EADDRINUSE},
		"all are in use by others":    {to: []string{"d:1"}, now: []string{"a:1", "b:1"}, open: []string{"A:1", "B:1"}, failure: syscall.EADDRINUSE},
		"another port, nothing stays": {to: []string{"a:2"}, open: []string{"A:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &hostNetwork{addrs: map[string]string{"a": "A", "a2": "A", "b": "B", "b2": "B", "c": "C", "d": "D"}, open: map[string]bool{"D:1": true}}
			h, err := Listen(n, "a:1", Identity{}, Security{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Relisten("a:1", "b:1"); err != nil {
				t.Fatal(err)
			}
			stays := h.ports[0].ln
			now, err := h.Relisten(tc.to...)
			if tc.now == nil {
				tc.now = tc.to
			}
			if !slices.Equal(now, tc.now) || !errors.Is(err, tc.failure) {
				t.Errorf("now at %v, %v; want %v, %v", now, err, tc.now, tc.failure)
			}
			if open, want := n.listening(), slices.Sorted(slices.Values(append(tc.open, "D:1"))); !slices.Equal(open, want) {
				t.Errorf("open: %v, want %v", open, want)
			}
			if i := slices.Index(now, "a:1"); i >= 0 && !errors.Is(tc.failure, syscall.EADDRINUSE) && h.ports[i].ln != stays {
				t.Error("the address that stays has another listener")
			}
			if now, err = h.Relisten("a:1", "b:1"); err != nil || len(now) != 2 {
				t.Errorf("back: %v, %v", now, err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if left := n.listening(); len(left) != 1 {
				t.Errorf("open after the close: %v", left)
			}
		})
	}
}

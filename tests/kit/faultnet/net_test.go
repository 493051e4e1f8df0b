package faultnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// patience bounds a wait. Even a loaded machine needs much less.
const patience = 60 * time.Second

// echo is a server that sends back its input.
type echo struct{ ln net.Listener }

func startEcho(t *testing.T) *echo {
	t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c) //nolint:errcheck // the copy may end with any error
				c.Close()
			}()
		}
	}()
	return &echo{ln}
}

// byLetter reads the dialler's name, which is the first byte.
func byLetter(r io.Reader) (string, []byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return string(b[:]), b[:], err
}

type rig struct {
	*Net
	t    *testing.T
	port *Port
}

func newRig(t *testing.T) *rig {
	t.Helper()
	n := New(1)
	t.Cleanup(n.Close)
	p := n.Port("s", "127.0.0.1:0", startEcho(t).ln.Addr().String(), byLetter)
	must.Do(t, p.Up())
	return &rig{n, t, p}
}

// dial connects as name. When it returns, the echo of the name has arrived,
// unless the link is cut.
func (r *rig) dial(name string) net.Conn {
	r.t.Helper()
	c := must.Get(net.Dial("tcp", r.port.Addr()))(r.t)
	r.t.Cleanup(func() { c.Close() })
	r.send(c, name)
	return c
}

func (r *rig) send(c net.Conn, s string) {
	r.t.Helper()
	must.Get(c.Write([]byte(s)))(r.t)
}

func (r *rig) expect(c net.Conn, s string) {
	r.t.Helper()
	c.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // the read reports errors
	b := make([]byte, len(s))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != s {
		r.t.Fatalf("got %q, %v; want %q", b, err, s)
	}
}

// silent checks that nothing arrives for a moment. On a slow machine it may miss
// data, but never fails wrongly.
func (r *rig) silent(c net.Conn) {
	r.t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) //nolint:errcheck // the read reports errors
	var b [1]byte
	var timeout net.Error
	if n, err := c.Read(b[:]); n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		r.t.Fatalf("%d bytes came, %v", n, err)
	}
}

func TestEveryDirectionByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.dial("a"), r.dial("b")
	r.expect(a, "a")
	r.expect(b, "b")
	for _, l := range []*Link{r.Link("a", "s"), r.Link("s", "a")} {
		l.Cut()
		r.send(a, "held back")
		r.silent(a)
		r.send(b, "unharmed")
		r.expect(b, "unharmed")
		l.Heal()
		r.expect(a, "held back")
	}
}

func TestConnectOverCut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Link("s", "a").Cut()
	a := r.dial("a")
	r.silent(a)
	r.Heal()
	r.expect(a, "a")
}

func TestReset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.dial("a"), r.dial("b")
	r.expect(a, "a")
	r.expect(b, "b")
	if n := r.Reset("a", "s"); n != 1 {
		t.Errorf("%d connections broken", n)
	}
	a.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // the read reports errors
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read from a broken connection: %v", err)
	}
	r.send(b, "unharmed")
	r.expect(b, "unharmed")
}

func TestSlowKeepsOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const d = 30 * time.Millisecond
	r.Link("a", "s").Slow(d, 50*time.Millisecond)
	r.Link("a", "s").Lose(0.2)
	began := time.Now()
	a := r.dial("a")
	r.expect(a, "a")
	if took := time.Since(began); took < d {
		t.Errorf("an echo after %v", took)
	}
	want := ""
	for i := range 50 {
		s := fmt.Sprintf("<%d>", i)
		want += s
		r.send(a, s)
	}
	r.expect(a, want)
}

// TestPortFollowsProcess checks that, when an end learns that a connection has
// ended, the port of a process that is gone already refuses connections.
func TestPortFollowsProcess(t *testing.T) {
	t.Parallel()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	n := New(1)
	defer n.Close()
	p := n.Port("s", "127.0.0.1:0", ln.Addr().String(), byLetter)
	must.Do(t, p.Up())
	c := must.Get(net.Dial("tcp", p.Addr()))(t)
	defer c.Close()
	must.Get(c.Write([]byte("a")))(t)
	served := must.Get(ln.Accept())(t)
	ln.Close()                                  //nolint:errcheck // as a process does
	served.Close()                              //nolint:errcheck // that ends
	c.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // the read reports errors
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("read: %v", err)
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
}

package netns

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// patience bounds a wait. Even a loaded machine needs much less.
const patience = 60 * time.Second

// pairOfHosts is a network with the hosts a and b. b echoes its input at :7.
type pairOfHosts struct {
	*Net
	t    *testing.T
	a, b *Host
}

func newPair(t *testing.T) *pairOfHosts {
	t.Helper()
	Needed(t)
	p := &pairOfHosts{Net: New(1), t: t}
	t.Cleanup(func() { p.check(p.Close()) })
	var err error
	p.a, err = p.Host("a")
	p.check(err)
	p.b, err = p.Host("b")
	p.check(err)
	ln, err := p.b.Listen(":7")
	p.check(err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go io.Copy(c, c) //nolint:errcheck // the copy may end with any error
		}
	}()
	return p
}

func (p *pairOfHosts) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pairOfHosts) dial() net.Conn {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	c, err := p.a.Dial(ctx, p.b.Addr().String()+":7")
	p.check(err)
	p.t.Cleanup(func() { c.Close() })
	return c
}

// echoes sends n bytes and reports whether they return within a time.
func (p *pairOfHosts) echoes(c net.Conn, n int, within time.Duration) bool {
	p.t.Helper()
	sent := bytes.Repeat([]byte{'x'}, n)
	p.check(c.SetDeadline(time.Now().Add(within)))
	must.Get(c.Write(sent))(p.t)
	got := make([]byte, n)
	_, err := io.ReadFull(c, got)
	return err == nil && bytes.Equal(sent, got)
}

func (p *pairOfHosts) mustEcho(c net.Conn, n int) {
	p.t.Helper()
	if !p.echoes(c, n, patience) {
		p.t.Fatalf("%d bytes do not come back", n)
	}
}

// moment is how long nothing may arrive over a broken link. On a slow machine the
// test may miss data, but never fails wrongly.
const moment = 300 * time.Millisecond

func (p *pairOfHosts) mustNotEcho(c net.Conn, n int) {
	p.t.Helper()
	if p.echoes(c, n, moment) {
		p.t.Fatalf("%d bytes come back", n)
	}
}

func TestCarries(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c := p.dial()
	p.mustEcho(c, 5)
	p.mustEcho(c, 1<<20)
	conns := p.Conns()
	if len(conns) != 1 {
		t.Fatalf("%d connections: %+v", len(conns), conns)
	}
	got := conns[0]
	if got.From != "a" || got.To != "b" || got.Dst.Port() != 7 || string(got.First[:5]) != "xxxxx" || got.Sent < 1<<20 || got.Received < 1<<20 {
		t.Errorf("the connection is %+v", got)
	}
	c.Close()
	wait.Eventually(t, "the connection is over", func() bool { return len(p.Conns()) == 0 })
	if _, err := p.a.Dial(t.Context(), p.b.Addr().String()+":8"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port where no process listens: %v", err)
	}
}

// TestForget checks that the packets of established connections are lost permanently, and the
// packets of new connections are not.
func TestForget(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	forgotten, kept := p.dial(), p.dial()
	p.mustEcho(forgotten, 5)
	p.mustEcho(kept, 5)
	conns := p.Conns()
	if len(conns) != 2 || conns[0].Src.String() != forgotten.LocalAddr().String() {
		t.Fatalf("connections: %+v", conns)
	}
	if n := p.Forget(conns[0]); n != 1 {
		t.Fatalf("%d forgotten", n)
	}
	p.mustNotEcho(forgotten, 5)
	p.Heal()
	p.mustNotEcho(forgotten, 5)
	p.mustEcho(kept, 5)
	p.mustEcho(p.dial(), 5)
	if n := len(p.Conns()); n != 2 {
		t.Errorf("%d connections are left", n)
	}
	if n := p.Forget(conns[0]); n != 1 {
		t.Errorf("forgotten again: %d", n)
	}
}

func TestDropLarge(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c, large := p.dial(), p.dial()
	p.mustEcho(c, 5)
	p.Link("a", "b").DropLarge(200)
	p.mustEcho(c, 100)
	p.mustNotEcho(large, 4000)
	p.mustEcho(c, 100)
	p.Heal()
	wait.Eventually(t, "the large ones arrive", func() bool { return p.echoes(p.dial(), 4000, patience) })
	p.Link("b", "a").DropLarge(1400)
	p.mustEcho(c, 1000)
	p.mustNotEcho(c, 1400)
}

func TestCutAndHeal(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, l := range []*Link{p.Link("a", "b"), p.Link("b", "a")} {
		c := p.dial()
		p.mustEcho(c, 5)
		l.Cut()
		p.mustNotEcho(c, 5)
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		if _, err := p.a.Dial(ctx, p.b.Addr().String()+":7"); err == nil {
			t.Error("a connection over a link that is cut")
		}
		cancel()
		l.Heal()
		p.mustEcho(p.dial(), 5)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c, kept := p.dial(), p.dial()
	p.mustEcho(c, 5)
	p.mustEcho(kept, 5)
	if n := p.Reset(p.Conns()[0]); n != 1 {
		t.Errorf("%d reset", n)
	}
	p.check(c.SetDeadline(time.Now().Add(patience)))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v", err)
	}
	p.mustEcho(kept, 5)
}

// TestShapes checks that a rate and a delay are kept. A slow machine makes it
// slower, never faster.
func TestShapes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	c := p.dial()
	p.Link("a", "b").Rate(800_000, 100*time.Millisecond)
	began := time.Now()
	p.mustEcho(c, 50_000) // half a second's worth
	if took := time.Since(began); took < 350*time.Millisecond {
		t.Errorf("50 kB at 800 kbit/s took %v", took)
	}
	p.Heal()
	p.Link("b", "a").Slow(100*time.Millisecond, 50*time.Millisecond)
	began = time.Now()
	p.mustEcho(c, 5)
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("an echo took %v", took)
	}
	p.Heal()
	p.Link("a", "b").Lose(0.05)
	p.mustEcho(c, 100_000)
}

// TestProcesses checks that a process that is started on a host's thread is in
// its namespace and sees nothing else.
func TestProcesses(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	var out []byte
	p.check(p.a.Do(func() (err error) {
		out, err = exec.Command("cat", "/proc/net/dev").Output()
		return err
	}))
	if !strings.Contains(string(out), device) || strings.Contains(string(out), "eth0") {
		t.Errorf("the interfaces of the host:\n%s", out)
	}
	before, err := os.Readlink("/proc/self/ns/net")
	p.check(err)
	if now, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || now != before {
		t.Errorf("a thread of the test is left in %s, not in %s: %v", now, before, err)
	}
}

func TestHostNames(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	if _, err := p.Host("a"); err == nil {
		t.Error("two hosts of one name")
	}
}

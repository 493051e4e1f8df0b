package mirror

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/words"
	"github.com/zkgo/zkgo/proto"
)

// Fence verifies from outside that the old ensemble accepts no clients any more.
//
// # What counts as closed
//
// An address is closed if each of several attempts to connect is refused, or ends without an
// answer (a firewall that drops packets, a machine that is off). An attempt that fails for
// another reason, e.g. a name that doesn't resolve, proves nothing and is an error. Names are
// resolved once, by Arm, because a name may disappear along with its server.
//
// Whatever accepts a connection counts as open, also if it answers neither srvr nor a
// ConnectRequest: the kernel accepts connections for a process that is stopped (SIGSTOP) or
// collects garbage, and that process continues to serve its clients when it wakes up. A server
// with too many connections accepts and closes them, too. The exception is an address in
// Proxies, e.g. of a load balancer, which accepts connections whatever happens to the servers.
// It counts as closed if it closes the connection without a byte in reply to both.
//
// # Connections that exist already
//
// A firewall may refuse new connections and let the packets of existing ones pass. Arm opens
// connections to each address. If a server refuses new connections but reacts on one from before,
// it still serves its clients. Unverified returns the addresses where we have not seen a reaction:
// they were closed before Arm, or the connection is silent, because a firewall drops its packets or
// the server is slow.
//
// We can only see what can be seen from this machine. A port that is closed for us may be open
// for others.
type Fence struct {
	// Addrs are the client addresses of all old servers, including those for TLS.
	Addrs []string
	// Proxies lists the Addrs that belong to a proxy.
	Proxies []string
	Dial    words.Dial
	// Tries is the number of attempts that must fail in a row, default 3; Pause is the time between
	// them, default 50 ms, and Timeout the time for each, default 500 ms.
	Tries          int
	Pause, Timeout time.Duration
	// Resolve returns the addresses of a host; by default with package net.
	Resolve func(ctx context.Context, host string) ([]string, error)

	targets []*target
	stop    func() // ends the goroutines of Arm
}

// target is one address to check.
type target struct {
	name  string // as configured
	addr  string // resolved
	proxy bool
	held  held
	once  sync.Once
	armed chan struct{} // closed after the first attempt to connect
}

// ErrOpen is in the tree of the error when an old server can still be reached.
var ErrOpen = errors.New("the old ensemble is not fenced")

// Arm prepares the check while the old servers still run. Call Disarm at the end.
func (f *Fence) Arm(ctx context.Context) error {
	f.Disarm()
	f.defaults()
	f.targets = nil
	for _, name := range f.Addrs {
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			return fmt.Errorf("mirror: %w", err)
		}
		ips, err := f.Resolve(ctx, host)
		if err != nil {
			return fmt.Errorf("mirror: the old server's address %s: %w", name, err)
		}
		for _, ip := range ips {
			f.targets = append(f.targets, &target{
				name: name, addr: net.JoinHostPort(ip, port), proxy: slices.Contains(f.Proxies, name), armed: make(chan struct{}),
			})
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var holding sync.WaitGroup
	f.stop = func() { cancel(); holding.Wait() }
	for _, t := range f.targets {
		holding.Go(func() { f.keep(ctx, t) })
	}
	for _, t := range f.targets {
		<-t.armed
	}
	return nil
}

func (f *Fence) defaults() {
	if f.Tries <= 0 {
		f.Tries = 3
	}
	if f.Pause <= 0 {
		f.Pause = 50 * time.Millisecond
	}
	if f.Timeout <= 0 {
		f.Timeout = 500 * time.Millisecond
	}
	if f.Resolve == nil {
		f.Resolve = net.DefaultResolver.LookupHost
	}
}

// Disarm closes the connections that Arm has opened.
func (f *Fence) Disarm() {
	if f.stop == nil {
		return
	}
	f.stop()
	for _, t := range f.targets {
		t.held.drop()
	}
	f.stop, f.targets = nil, nil
}

// Unverified returns the addresses where Closed could not see whether existing connections have
// ended.
func (f *Fence) Unverified() (names []string) {
	for _, t := range f.targets {
		if t.held.unverified() {
			names = append(names, t.String())
		}
	}
	return names
}

// Closed waits until no old server can be reached. It asks again until the deadline of ctx, and
// then its error names the addresses that still answer.
func (f *Fence) Closed(ctx context.Context) error {
	if f.stop == nil {
		return errors.New("mirror: the fence is checked without having been armed")
	}
	if len(f.targets) == 0 {
		return errors.New("mirror: the client addresses of the old ensemble are unknown: use --clients")
	}
	var last error
	for {
		err := f.check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // an attempt that the deadline has interrupted has a less useful error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("mirror: %w: %w", ErrOpen, last)
		case <-time.After(f.Pause):
		}
	}
}

// check checks all targets once.
func (f *Fence) check(ctx context.Context) error {
	errs := make([]error, len(f.targets))
	var done sync.WaitGroup
	for i, t := range f.targets {
		done.Go(func() { errs[i] = f.closed(ctx, t) })
	}
	done.Wait()
	return errors.Join(errs...)
}

// closed returns nil if a target is closed.
func (f *Fence) closed(ctx context.Context, t *target) error {
	for try := range f.Tries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: %w", t, ctx.Err())
			case <-time.After(f.Pause):
			}
		}
		if err := f.try(ctx, t); err != nil {
			return fmt.Errorf("%s %w", t, err)
		}
	}
	if err := f.tryHeld(ctx, t); err != nil {
		return fmt.Errorf("%s %w", t, err)
	}
	return nil
}

// String names the target as configured, and the address that the name resolved to.
func (t *target) String() string {
	if t.name == t.addr {
		return t.name
	}
	return t.name + " (" + t.addr + ")"
}

// try returns an error unless a connection is refused or not answered.
func (f *Fence) try(ctx context.Context, t *target) error {
	dialing, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	conn, err := f.Dial.To(dialing, t.addr)
	switch {
	case err == nil && t.proxy:
		_ = conn.Close()
		return f.tryProxy(ctx, t)
	case err == nil:
		defer conn.Close()
		if text, err := f.talk(ctx, conn, []byte("srvr")); err == nil {
			return fmt.Errorf("still answers: %q", text)
		}
		return errors.New("still accepts connections; if it is a proxy that always does, name it as one")
	case ctx.Err() != nil:
		return fmt.Errorf("was not checked: %w", ctx.Err())
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EHOSTUNREACH), isTimeout(err):
		return nil
	}
	return fmt.Errorf("can't be checked: %w", err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// tryProxy returns an error unless the proxy closes the connection without a byte, whatever we
// send. The session in the ConnectRequest doesn't exist, so a server that receives it rejects it
// and opens none.
func (f *Fence) tryProxy(ctx context.Context, t *target) error {
	connect := proto.ConnectRequest{TimeOut: 10_000, SessionID: 1, Passwd: make([]byte, 16)}
	for _, hello := range [][]byte{[]byte("srvr"), proto.AppendFrame(nil, connect.Append(nil))} {
		conn, err := f.Dial.To(ctx, t.addr)
		if err != nil {
			continue // closed now
		}
		text, err := f.talk(ctx, conn, hello)
		_ = conn.Close()
		switch {
		case err == nil:
			return fmt.Errorf("still answers: %q", text)
		case isTimeout(err):
			return errors.New("still accepts connections, and leaves them open")
		}
	}
	return nil
}

// mostOfReply limits the part of a reply that we read and show.
const mostOfReply = 60

// talk writes to a connection and returns the beginning of the reply.
func (f *Fence) talk(ctx context.Context, conn net.Conn, hello []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(hello); err != nil {
		return "", err
	}
	reply := make([]byte, mostOfReply)
	n, err := conn.Read(reply)
	if n > 0 {
		return string(reply[:n]), nil
	}
	return "", err
}

package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// rehold is the time after which Arm opens another connection.
	rehold = time.Second
	// tooOld is the age from which a connection proves nothing. ZooKeeper closes one
	// without a session after 10 s.
	tooOld = 9 * time.Second
	// mostHeld is the number of connections that we keep open. A look at one ends it.
	mostHeld = 4
	// lookAgain is the time between two looks, so that they last as long as possible.
	lookAgain = 2 * time.Second
	// peek is the time in which a connection shows that it has ended already.
	peek = 20 * time.Millisecond
)

// A held contains the connections to one address that we opened before the fence.
type held struct {
	mu     sync.Mutex
	conns  []heldConn // oldest first
	answer error      // the result of the last look
	again  time.Time  // of the next look
	ended  bool       // a look has found that a connection has ended
}

type heldConn struct {
	net.Conn
	since time.Time
}

// add adds a connection, and reports whether there should be more. The address accepts new ones, so
// the last result is out of date.
func (h *held) add(conn net.Conn) (more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.ended = nil, false
	if h.conns = append(h.conns, heldConn{conn, time.Now()}); len(h.conns) > mostHeld {
		_ = h.conns[0].Close()
		h.conns = h.conns[1:]
	}
	return len(h.conns) < mostHeld
}

// take removes and returns the newest connection to look at. If there is no need, or no
// connection, it returns nil and the result of the last look.
func (h *held) take() (conn net.Conn, answer error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.conns) - 1
	if h.ended || last < 0 || h.answer != nil && time.Now().Before(h.again) || time.Since(h.conns[last].since) >= tooOld {
		return nil, h.answer
	}
	conn, h.conns = h.conns[last].Conn, h.conns[:last]
	return conn, nil
}

// found keeps the result of a look.
func (h *held) found(answer error, ended bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.ended, h.again = answer, ended, time.Now().Add(lookAgain)
	return answer
}

// unverified reports whether no look has found that the connections have ended.
func (h *held) unverified() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.ended
}

// drop closes all connections.
func (h *held) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.conns {
		_ = conn.Close()
	}
	h.conns = nil
}

// keep opens connections to a target as long as it accepts them. Once it doesn't, the last ones
// show whether it also ended its existing connections.
func (f *Fence) keep(ctx context.Context, t *target) {
	tick := time.NewTicker(rehold)
	defer tick.Stop()
	for {
		for f.hold(ctx, t) {
		}
		t.once.Do(func() { close(t.armed) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// hold adds a connection to a target, and reports whether there should be more.
func (f *Fence) hold(ctx context.Context, t *target) (more bool) {
	dialing, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	conn, err := f.Dial.To(dialing, t.addr)
	if err == nil {
		return t.held.add(conn)
	}
	if ctx.Err() == nil {
		_ = f.tryHeld(ctx, t) // Closed returns it, too
	}
	return false
}

// tryHeld returns an error if a server still serves a connection that we have opened before the
// fence.
func (f *Fence) tryHeld(ctx context.Context, t *target) error {
	conn, answer := t.held.take()
	if conn == nil {
		return answer
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(peek)) // an error shows in Read
	var one [1]byte
	if _, err := conn.Read(one[:]); err != nil && !isTimeout(err) {
		return t.held.found(nil, true)
	}
	_ = conn.SetReadDeadline(time.Time{})
	reply, err := f.talk(ctx, conn, []byte("srvr"))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("was not checked: %w", ctx.Err())
	case err == nil:
		return t.held.found(fmt.Errorf("accepts no new connections, but still serves existing ones: it answers %q; stop the server, and start again", reply), false)
	case errors.Is(err, io.EOF) && !t.proxy: // because of our bytes, e.g. if the port is for TLS
		return t.held.found(errors.New("accepts no new connections, but still serves existing ones: it closes one only when we send something; stop the server, and start again"), false)
	}
	return t.held.found(nil, !isTimeout(err)) // a silent one may belong to a server that is slow
}

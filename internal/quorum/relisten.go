package quorum

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
)

// port is an address that the hub listens on.
type port struct {
	addr string // as it was asked for; "" for a listener that was lost
	ln   net.Listener
}

// isAt returns a function that reports whether a port is at addr.
func isAt(addr string) func(p port) bool { return func(p port) bool { return p.addr == addr } }

// relisten is one call of Relisten.
type relisten struct {
	h       *Hub
	wanted  []port // open, and asked for
	leaving []port // open, and not asked for
	opened  []port // by this call
}

// Relisten makes the hub listen on addrs, at least one, and no others. Ports that are open
// stay open, and so do connections. If we can't listen on one of addrs, we listen on the
// others and keep the old ports open, because other servers may not reach us elsewhere. It
// returns the addresses that the hub listens on. Calls must not overlap.
func (h *Hub) Relisten(addrs ...string) ([]string, error) {
	r := relisten{h: h}
	h.mu.Lock()
	for _, p := range h.ports {
		if !slices.Contains(addrs, p.addr) {
			r.leaving = append(r.leaving, p)
		}
	}
	open := h.ports
	h.mu.Unlock()
	var failed error
	for _, addr := range addrs {
		if i := slices.IndexFunc(open, isAt(addr)); i >= 0 {
			r.wanted = append(r.wanted, open[i])
		} else if p, err := r.open(addr); err == nil {
			r.wanted = append(r.wanted, p)
		} else {
			failed = errors.Join(failed, fmt.Errorf("quorum port %s: %w", addr, err))
		}
	}
	if failed != nil {
		r.wanted, r.leaving = append(r.wanted, r.leaving...), nil
	}
	return r.conclude(failed)
}

// open opens a port. If the system reports that it is in use, one of our own ports that
// we are about to close may be the reason, e.g. one with another name for the same
// address, or at all addresses of this host. In that case we close that one first.
func (r *relisten) open(addr string) (port, error) {
	p, err := r.listen(addr)
	for i := 0; i < len(r.leaving) && errors.Is(err, syscall.EADDRINUSE); i++ {
		old := &r.leaving[i]
		if !samePort(old.addr, addr) {
			continue
		}
		_ = old.ln.Close()
		if p, err = r.listen(addr); err == nil {
			r.leaving = slices.Delete(r.leaving, i, i+1)
			break
		}
		again, lost := r.listen(old.addr)
		if lost != nil {
			old.addr = ""
			return port{}, errors.Join(err, lost)
		}
		*old = again
	}
	return p, err
}

func (r *relisten) listen(addr string) (port, error) {
	ln, err := r.h.network.Listen(addr)
	if err == nil {
		r.opened = append(r.opened, port{addr, ln})
	}
	return port{addr, ln}, err
}

// samePort reports whether two addresses have the same port.
func samePort(a, b string) bool {
	_, x, _ := net.SplitHostPort(a)
	_, y, _ := net.SplitHostPort(b)
	return x == y
}

// conclude starts to accept connections at the wanted ports and closes the other ports.
func (r *relisten) conclude(failed error) ([]string, error) {
	h := r.h
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		failed = errors.Join(failed, net.ErrClosed)
		for _, p := range r.opened {
			_ = p.ln.Close() // some were closed before
		}
		return nil, failed
	}
	h.ports = r.wanted
	h.wg.Add(len(r.opened))
	h.mu.Unlock()
	for _, p := range r.opened {
		go h.accept(p.ln)
	}
	for _, p := range r.leaving {
		_ = p.ln.Close()
	}
	var now []string
	for _, p := range r.wanted {
		if p.addr != "" {
			now = append(now, p.addr)
		}
	}
	return now, failed
}

// Package poller reports which of many sockets have input, and transfers bytes without
// blocking. We use it because a goroutine per socket costs several KiB, whereas a Poller
// waits for all sockets on one goroutine. The package knows only descriptors and their
// handles. It doesn't interpret the bytes.
package poller

import (
	"errors"
	"sync"
	"syscall"
)

// ErrClosed is the error of a Poller that has been closed or has failed.
var ErrClosed = errors.New("poller: closed")

// Poller watches sockets for a few workers, i.e. goroutines that call Wait and handle the
// events. H is the caller's handle for a socket, e.g. a pointer to its connection. The zero
// value is not a handle.
type Poller[H comparable] struct {
	kernel *epoll

	mu      sync.Mutex
	more    sync.Cond  // signals that ready is not empty or that no worker listens
	ready   []Event[H] // from the kernel; workers have ready[:next]
	next    int
	listens bool // a worker is waiting for the kernel
	closed  bool
	handles []H        // by ID
	free    []ID       // unused
	heard   []occasion // buffer of the worker that listens
}

// ID identifies a watched socket to the Poller.
type ID int32

// NoID is the ID of a socket that isn't watched.
const NoID ID = -1

// Event reports that a socket has input, or may have some.
type Event[H comparable] struct {
	Handle H
	HungUp bool // the peer sends nothing more: this is the last event of the socket
}

// occasion is an event as the kernel reports it.
type occasion struct {
	id     ID
	hungUp bool
}

// New returns a Poller without sockets, or errors.ErrUnsupported if the system has none.
func New[H comparable]() (*Poller[H], error) {
	kernel, err := newEpoll()
	if err != nil {
		return nil, err
	}
	p := &Poller[H]{kernel: kernel}
	p.more.L = &p.mu
	return p, nil
}

// Add watches a socket. Each time input arrives, Wait returns one event; the input that
// has already arrived counts as well.
func (p *Poller[H]) Add(socket syscall.RawConn, h H) (ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return NoID, ErrClosed
	}
	id := ID(len(p.handles))
	if n := len(p.free); n > 0 {
		id, p.free = p.free[n-1], p.free[:n-1]
		p.handles[id] = h
	} else {
		p.handles = append(p.handles, h)
	}
	if err := p.kernel.add(socket, id); err != nil {
		p.release(id)
		return NoID, err
	}
	return id, nil
}

// Remove undoes Add. The socket may be closed. Events that are ready, or that a worker
// already has, can still arrive.
func (p *Poller[H]) Remove(socket syscall.RawConn, id ID) {
	_ = p.kernel.remove(socket) // the socket is closed, or was added
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(id)
}

// release frees id; p.mu is held. If the kernel still has an event for it, the next handle
// with this id gets an event without input, which is harmless.
func (p *Poller[H]) release(id ID) {
	var none H
	p.handles[id] = none
	p.free = append(p.free, id)
}

// Len returns the number of watched sockets.
func (p *Poller[H]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.handles) - len(p.free)
}

// Wait waits for events, fills dst with them, and returns how many it got, at least one.
// Events that don't fit go to the other callers. One caller waits for the kernel, the
// others for their share. If the kernel fails, one caller gets its error and the others
// ErrClosed.
func (p *Poller[H]) Wait(dst []Event[H]) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next == len(p.ready) {
		switch {
		case p.closed:
			return 0, ErrClosed
		case p.listens:
			p.more.Wait()
		default:
			if err := p.listen(); err != nil {
				return 0, err
			}
			if len(p.ready)-p.next > len(dst) {
				p.more.Signal()
			}
		}
	}
	n := copy(dst, p.ready[p.next:])
	p.next += n
	return n, nil
}

// listen waits for the kernel and queues the events; p.mu is held, but released while it
// waits.
func (p *Poller[H]) listen() error {
	p.listens = true
	p.mu.Unlock()
	heard, err := p.kernel.wait(p.heard[:0])
	p.mu.Lock()
	p.listens, p.heard = false, heard
	if err != nil && !p.closed {
		p.closed = true
		p.more.Broadcast()
		return err
	}
	clear(p.ready)
	p.ready, p.next = p.ready[:0], 0
	var none H
	for _, o := range heard {
		if h := p.handles[o.id]; h != none {
			p.ready = append(p.ready, Event[H]{h, o.hungUp})
		}
	}
	return nil
}

// Close makes Wait return ErrClosed once it has returned the ready events. The sockets stay
// open.
func (p *Poller[H]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.kernel.close()
	p.more.Broadcast()
}

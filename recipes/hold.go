package recipes

import (
	"context"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
)

// Hold implements the policies with a lease of the client, its state changes, or
// both.
func (s *session) Hold(ctx context.Context, policy LossPolicy) (Hold, error) {
	if policy == LostBeforeExpiry {
		l, err := s.c.Lease(ctx)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	h := &stateHold{session: s.id, states: s.c.Subscribe(), done: make(chan struct{}), stop: make(chan struct{})}
	if policy == LostOnDisconnect {
		l, err := s.c.Lease(ctx)
		if err != nil {
			h.states.Close()
			return nil, err
		}
		h.lease = l
	}
	go h.follow()
	return h, nil
}

// stateHold ends when the client's state changes accordingly.
type stateHold struct {
	session int64
	lease   *client.Lease // with LostOnDisconnect
	states  *client.StateSubscription
	stop    chan struct{}
	once    sync.Once // closes stop

	mu   sync.Mutex
	done chan struct{}
	err  error
}

// follow ends the hold when the session is lost. It returns when the hold has ended.
func (h *stateHold) follow() {
	defer h.states.Close()
	var leaseDone <-chan struct{}
	if h.lease != nil {
		leaseDone = h.lease.Done()
	}
	for {
		select {
		case change, ok := <-h.states.C():
			if h.over(change, ok) {
				h.end(client.ErrSessionExpired)
				return
			}
		case <-leaseDone:
			h.end(client.ErrSessionExpired)
			return
		case <-h.stop:
			return
		}
	}
}

// over reports whether a state change ends the hold.
func (h *stateHold) over(change client.StateChange, ok bool) bool {
	switch {
	case !ok, change.State == client.StateClosed, change.State == client.StateLost:
		return true
	case change.Session != 0 && change.Session != h.session:
		return true // the session was lost before this hold subscribed
	case h.lease == nil:
		return false
	}
	return change.State == client.StateSuspended || change.State == client.StateReadOnly
}

// end records the first error and closes Done.
func (h *stateHold) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	h.err = err
	if h.lease != nil {
		h.lease.Release()
	}
	close(h.done)
}

func (h *stateHold) Done() <-chan struct{} { return h.done }

func (h *stateHold) Err() error {
	if h.lease != nil {
		if err := h.lease.Err(); err != nil {
			h.end(err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *stateHold) Deadline() time.Time {
	if h.lease == nil {
		return time.Time{}
	}
	return h.lease.Deadline()
}

func (h *stateHold) Release() {
	h.end(context.Canceled)
	h.once.Do(func() { close(h.stop) })
}

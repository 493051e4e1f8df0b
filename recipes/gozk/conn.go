package gozk

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// On returns the [recipes.Conn] for c. events is the channel that zk.Connect returned
// with c, and no other goroutine may read it; d is the Dialer that was used to
// connect c. On starts a goroutine that runs until c is closed.
func On(c *zk.Conn, events <-chan zk.Event, d *Dialer) recipes.Conn {
	a := &adapter{zk: c, d: d, closed: make(chan struct{})}
	go a.follow(events)
	return a
}

type adapter struct {
	zk     *zk.Conn
	d      *Dialer
	closed chan struct{} // closed when c was closed

	mu      sync.Mutex
	current *session
}

// follow wakes waiters when the state may have changed. We ignore the contents of the
// events, because go-zookeeper drops some when many arrive. Each waiter checks the state
// itself, and after a dropped event there are always others.
func (a *adapter) follow(events <-chan zk.Event) {
	for range events {
		a.d.tell(func() {})
	}
	close(a.closed)
}

func (a *adapter) isClosed() bool {
	select {
	case <-a.closed:
		return true
	default:
		return false
	}
}

// Session waits for a session: see [recipes.Conn].
func (a *adapter) Session(ctx context.Context) (recipes.Session, error) {
	for {
		change := a.d.change()
		if a.isClosed() {
			return nil, &client.Error{Op: "session", Err: client.ErrClosed}
		}
		if id := a.zk.SessionID(); id != 0 && a.zk.State() == zk.StateHasSession {
			return a.session(id), nil
		}
		if err := a.wait(ctx, change); err != nil {
			return nil, &client.Error{Op: "session", Err: err}
		}
	}
}

// wait waits for a change.
func (a *adapter) wait(ctx context.Context, change <-chan struct{}) error {
	select {
	case <-change:
	case <-a.closed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// session returns the single value for a session.
func (a *adapter) session(id int64) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.id != id {
		a.current = &session{a: a, id: id, spare: map[watched]<-chan zk.Event{}}
	}
	return a.current
}

// pause is the delay before a read is retried.
const pause = 20 * time.Millisecond

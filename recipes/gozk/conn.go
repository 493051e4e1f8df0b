package gozk

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// On returns c as recipes see it. events is the channel that came with c, which
// nobody else may read; d is the Dialer that c was connected with. It uses a
// goroutine until c is closed.
func On(c *zk.Conn, events <-chan zk.Event, d *Dialer) recipes.Conn {
	a := &adapter{zk: c, d: d, closed: make(chan struct{})}
	go a.follow(events)
	return a
}

type adapter struct {
	zk     *zk.Conn
	d      *Dialer
	closed chan struct{} // closed when c was

	mu      sync.Mutex
	current *session
}

// follow says when there may be something new. It does not believe the events
// themselves, of which some are dropped when many come: whoever is told looks for
// himself, and behind a dropped event there are others.
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

// Session waits for a session, as recipes.Conn says.
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

// session returns the one value that stands for a session.
func (a *adapter) session(id int64) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.id != id {
		a.current = &session{a: a, id: id, spare: map[watched]<-chan zk.Event{}}
	}
	return a.current
}

// pause is the wait before a read is tried again.
const pause = 20 * time.Millisecond

package gozk

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// watched identifies the path and the kind of a watch.
type watched struct {
	kind kind
	path string
}

type kind uint8

const (
	exists kind = iota
	data
	children
)

func (s *session) ExistsW(ctx context.Context, path string) (client.Stat, bool, recipes.Watch, error) {
	r, w, err := s.watching(ctx, watched{exists, path}, "exists",
		func() (read, error) { return s.a.exists(path) },
		func() (read, error) {
			there, stat, event, err := s.a.zk.ExistsW(path)
			r := read{there: there && err == nil, event: event}
			if r.there {
				r.stat = statOf(stat, err)
			}
			return r, err
		})
	return r.stat, r.there, w, err
}

func (s *session) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	r, w, err := s.watching(ctx, watched{data, path}, "getData",
		func() (read, error) { return s.a.get(path) },
		func() (read, error) {
			data, stat, event, err := s.a.zk.GetW(path)
			return read{data: data, stat: statOf(stat, err), event: event}, err
		})
	return r.data, r.stat, w, err
}

func (s *session) ChildrenW(ctx context.Context, path string) ([]string, client.Stat, recipes.Watch, error) {
	r, w, err := s.watching(ctx, watched{children, path}, "getChildren2",
		func() (read, error) { return s.a.children(path) },
		func() (read, error) {
			names, stat, event, err := s.a.zk.ChildrenW(path)
			return read{names: names, stat: statOf(stat, err), event: event}, err
		})
	return r.names, r.stat, w, err
}

// watching reads with a watch. If there is a spare watch that has not fired when the reply
// arrives, we use it, because it is valid for the state that we read. Otherwise we set a
// new one.
func (s *session) watching(ctx context.Context, k watched, op string, plain, anew func() (read, error)) (read, recipes.Watch, error) {
	req := request{op: op, path: k.path}
	if event := s.takeSpare(k); event != nil {
		r, err := call(ctx, s, req, plain)
		if err != nil {
			s.keepSpare(k, event)
			return r, nil, err
		}
		if len(event) == 0 {
			return r, s.watch(k, event), nil
		}
	}
	r, err := call(ctx, s, req, anew)
	if err != nil {
		return r, nil, err
	}
	return r, s.watch(k, r.event), nil
}

// takeSpare returns a watch without a waiter, or nil.
func (s *session) takeSpare(k watched) <-chan zk.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	event := s.spare[k]
	delete(s.spare, k)
	return event
}

// keepSpare keeps a watch that has not fired, and drops the watches that have.
func (s *session) keepSpare(k watched, event <-chan zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare[k] = event
	for k, event := range s.spare {
		if len(event) > 0 {
			delete(s.spare, k)
		}
	}
}

// watch is a watch of a *zk.Conn.
type watch struct {
	events  chan client.Event
	removed chan struct{}
	once    sync.Once
}

func (s *session) watch(k watched, event <-chan zk.Event) *watch {
	w := &watch{events: make(chan client.Event, 1), removed: make(chan struct{})}
	go func() {
		defer close(w.events)
		select {
		case e, ok := <-event:
			if ok && e.Type != zk.EventNotWatching {
				w.events <- client.Event{Type: client.EventType(e.Type), Path: e.Path, Zxid: -1}
			}
		case <-w.removed:
			s.keepSpare(k, event)
		}
	}()
	return w
}

func (w *watch) Events() <-chan client.Event { return w.events }

// Remove leaves the watch on the server: see the package comment.
func (w *watch) Remove(context.Context) { w.once.Do(func() { close(w.removed) }) }

package steps

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
)

// lag is how far a server is behind if no client asks it to sync.
const lag = 5 * time.Second

// behind is a connection that broke during a write and continues on a server that
// has not applied that write: reads show the written znodes as they were before,
// until a sync or another write is answered, or until the server has caught up by
// itself.
type behind struct {
	recipes.Conn
	ahead *client.Client // has applied every write

	mu     sync.Mutex
	old    map[string]state // the state that the reader sees instead of the current one
	caught chan struct{}    // closed when the server has caught up
}

// state is a znode as it was. Each reader gets its own copy.
type state struct {
	there bool
	data  []byte
	stat  client.Stat
	names []string
}

// Session implements [recipes.Conn].
func (b *behind) Session(ctx context.Context) (recipes.Session, error) {
	s, err := b.Conn.Session(ctx)
	if err != nil {
		return nil, err
	}
	return behindSession{s, b}, nil
}

// write executes a write, and leaves the server behind if its reply is lost.
func (b *behind) write(do func() error, paths ...string) error {
	before := make(map[string]state)
	for _, p := range paths {
		for _, at := range []string{p, proto.Parent(p)} {
			before[at] = b.look(at)
		}
	}
	err := do()
	switch {
	case errors.Is(err, client.ErrUnknownOutcome):
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.old == nil {
			caught := make(chan struct{})
			b.old, b.caught = before, caught
			time.AfterFunc(lag, func() { b.catchUp(caught) })
		}
	case !errors.Is(err, client.ErrConnectionLoss): // a server that answers a write has applied all writes before it
		_, _, caught := b.shown("")
		b.catchUp(caught)
	}
	return err
}

// look returns the current state. A znode that cannot be read counts as missing.
func (b *behind) look(path string) (s state) {
	ctx := context.Background()
	var err error
	if s.data, s.stat, err = b.ahead.Get(ctx, path); err == nil {
		s.names, _, err = b.ahead.Children(ctx, path)
	}
	s.there = err == nil
	return s
}

// catchUp ends the time in which the server is behind, unless caught belongs to
// an earlier such time.
func (b *behind) catchUp(caught chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.old != nil && b.caught == caught {
		b.old = nil
		close(caught)
	}
}

// shown returns the old state that the server shows for path, if any, and a
// channel that is closed when the server has caught up.
func (b *behind) shown(path string) (s state, instead bool, caught chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, instead = b.old[path]
	return s, instead, b.caught
}

// behindSession is a session on a behind connection.
type behindSession struct {
	recipes.Session
	b *behind
}

func (s behindSession) Sync(ctx context.Context, path string) error {
	err := s.Session.Sync(ctx, path)
	if err == nil {
		_, _, caught := s.b.shown(path)
		s.b.catchUp(caught)
	}
	return err
}

func (s behindSession) Create(ctx context.Context, path string, data []byte, mode recipes.Mode, acl []client.ACL) (created string, err error) {
	err = s.b.write(func() error {
		created, err = s.Session.Create(ctx, path, data, mode, acl)
		return err
	}, path)
	return created, err
}

// CreateTTL implements [recipes.TTLCreator], if the wrapped session does.
func (s behindSession) CreateTTL(ctx context.Context, path string, data []byte, ttl time.Duration, acl []client.ACL) (created string, err error) {
	c, can := s.Session.(recipes.TTLCreator)
	if !can {
		return "", client.ErrUnimplemented
	}
	err = s.b.write(func() error {
		created, err = c.CreateTTL(ctx, path, data, ttl, acl)
		return err
	}, path)
	return created, err
}

func (s behindSession) Delete(ctx context.Context, path string, version int32) error {
	return s.b.write(func() error { return s.Session.Delete(ctx, path, version) }, path)
}

func (s behindSession) Set(ctx context.Context, path string, data []byte, version int32) (stat client.Stat, err error) {
	err = s.b.write(func() error {
		stat, err = s.Session.Set(ctx, path, data, version)
		return err
	}, path)
	return stat, err
}

func (s behindSession) Multi(ctx context.Context, ops ...recipes.Op) error {
	paths := make([]string, len(ops))
	for i, op := range ops {
		paths[i] = op.Path
	}
	return s.b.write(func() error { return s.Session.Multi(ctx, ops...) }, paths...)
}

func (s behindSession) Exists(ctx context.Context, path string) (client.Stat, bool, error) {
	stat, there, err := s.Session.Exists(ctx, path)
	if old, instead, _ := s.b.shown(path); instead && err == nil {
		return old.stat, old.there, nil
	}
	return stat, there, err
}

func (s behindSession) Get(ctx context.Context, path string) ([]byte, client.Stat, error) {
	data, stat, err := s.Session.Get(ctx, path)
	if old, instead, _ := s.b.shown(path); instead && answered(err) {
		return slices.Clone(old.data), old.stat, old.missing()
	}
	return data, stat, err
}

func (s behindSession) Children(ctx context.Context, path string) ([]string, client.Stat, error) {
	names, stat, err := s.Session.Children(ctx, path)
	if old, instead, _ := s.b.shown(path); instead && answered(err) {
		return slices.Clone(old.names), old.stat, old.missing()
	}
	return names, stat, err
}

// answered reports whether a read got a reply.
func answered(err error) bool { return err == nil || errors.Is(err, client.ErrNoNode) }

func (s state) missing() error {
	if s.there {
		return nil
	}
	return client.ErrNoNode
}

func (s behindSession) ExistsW(ctx context.Context, path string) (client.Stat, bool, recipes.Watch, error) {
	stat, there, w, err := s.Session.ExistsW(ctx, path)
	if old, instead, caught := s.b.shown(path); instead && err == nil {
		return old.stat, old.there, s.b.watch(w, nil, caught), nil
	}
	return stat, there, w, err
}

func (s behindSession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	data, stat, w, err := s.Session.GetW(ctx, path)
	if old, instead, caught := s.b.shown(path); instead && answered(err) {
		return slices.Clone(old.data), old.stat, s.b.watch(w, err, caught), old.missing()
	}
	return data, stat, w, err
}

func (s behindSession) ChildrenW(ctx context.Context, path string) ([]string, client.Stat, recipes.Watch, error) {
	names, stat, w, err := s.Session.ChildrenW(ctx, path)
	if old, instead, caught := s.b.shown(path); instead && answered(err) {
		return slices.Clone(old.names), old.stat, s.b.watch(w, err, caught), old.missing()
	}
	return names, stat, w, err
}

// watch returns a watch as left on a server that is behind: it fires when that
// server has caught up. w is the real watch, unless err says that it was not
// left.
func (b *behind) watch(w recipes.Watch, err error, caught <-chan struct{}) recipes.Watch {
	l := &late{events: make(chan client.Event, 1), gone: make(chan struct{})}
	if err == nil {
		l.real = w
	}
	go func() {
		select {
		case <-caught:
			l.remove(context.Background()) // no server has a watch that has fired
			l.events <- client.Event{Type: client.EventNodeDataChanged}
		case <-l.gone:
		}
	}()
	return l
}

// late is a watch on a server that is behind.
type late struct {
	real   recipes.Watch // nil if there is none
	events chan client.Event
	once   sync.Once
	gone   chan struct{}
}

func (l *late) Events() <-chan client.Event { return l.events }

func (l *late) Remove(ctx context.Context) {
	l.once.Do(func() { close(l.gone) })
	l.remove(ctx)
}

func (l *late) remove(ctx context.Context) {
	if l.real != nil {
		l.real.Remove(ctx)
	}
}

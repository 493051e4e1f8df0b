package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// errLeaseOver says that the time of a lease has run out.
var errLeaseOver = errors.New("its time has run out")

// errTaken says that another has the lease.
var errTaken = errors.New("its znode has gone")

// tenancy is the holding of a [LeaseLock]: one persistent znode, renewed or not.
type tenancy struct {
	conn  recipes.Conn
	dir   string
	mark  string
	lease time.Duration
	renew bool
	data  []byte // of the znode; of keep alone, once it runs
	path  string
	// known is the session that was told that the znode was created; 0 if nobody
	// was. What a session was told of it reads.
	known int64

	mu      sync.Mutex
	version int32
	until   time.Time
}

// begin finds the znode and makes a grant of it. Without a znode there is no
// grant, and no error.
func (t *tenancy) begin(ctx context.Context, sent time.Time) (*grant, error) {
	stat, err := t.find(ctx)
	if err != nil {
		go t.remove()
		return nil, err
	}
	if t.path == "" {
		return nil, errVanished
	}
	t.extend(sent, stat.Version)
	g := newGrant(t.path, Token(stat.Czxid))
	g.session = t.conn.Session
	g.valid, g.deadline, g.finish = t.valid, t.deadline, t.leave
	if err := t.valid(); err != nil {
		go t.remove()
		return nil, errVanished // the answer took longer than the lease
	}
	go t.keep(g)
	return g, nil
}

// find looks for the znode by its mark.
func (t *tenancy) find(ctx context.Context) (client.Stat, error) {
	for {
		stat, err := t.look(ctx)
		if !errors.Is(err, client.ErrSessionExpired) || ctx.Err() != nil {
			return stat, err
		}
	}
}

func (t *tenancy) look(ctx context.Context) (client.Stat, error) {
	s, err := t.conn.Session(ctx)
	if err != nil {
		return client.Stat{}, err
	}
	if s.ID() != t.known {
		if err := s.Sync(ctx, t.dir); err != nil {
			return client.Stat{}, err
		}
	}
	names, _, err := s.Children(ctx, t.dir)
	if err != nil && !errors.Is(err, client.ErrNoNode) {
		return client.Stat{}, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, t.mark) {
			path := recipes.Join(t.dir, name)
			_, stat, err := s.Get(ctx, path)
			if err == nil {
				t.path = path
			} else if errors.Is(err, client.ErrNoNode) {
				err = nil
			}
			return stat, err
		}
	}
	return client.Stat{}, nil
}

// extend notes a create or a renewal that was sent at sent.
func (t *tenancy) extend(sent time.Time, version int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
	t.until = sent.Add(t.lease - t.lease/20)
}

func (t *tenancy) deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

func (t *tenancy) valid() error {
	if time.Now().Before(t.deadline()) {
		return nil
	}
	return errLeaseOver
}

// keep renews the lease, if it is to be renewed, and ends the grant with it.
func (t *tenancy) keep(g *grant) {
	defer close(g.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-g.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		wait := time.Until(t.deadline())
		if t.renew {
			wait = min(wait, t.lease/3)
		}
		if recipes.Sleep(ctx, wait) != nil {
			return
		}
		if err := t.valid(); err != nil {
			g.lose(err)
			return
		}
		if !t.renew {
			continue
		}
		if err := t.extendNow(ctx, g); errors.Is(err, errTaken) {
			g.lose(err)
			return
		}
	}
}

// extendNow renews once, or until the lease is over.
func (t *tenancy) extendNow(ctx context.Context, g *grant) error {
	ctx, cancel := context.WithDeadline(ctx, t.deadline())
	defer cancel()
	for ctx.Err() == nil {
		sent := time.Now()
		s, err := t.conn.Session(ctx)
		if err != nil {
			return err
		}
		t.mu.Lock()
		version := t.version
		t.mu.Unlock()
		stat, err := s.Set(ctx, t.path, t.data, version)
		switch {
		case err == nil:
			t.extend(sent, stat.Version)
			return nil
		case errors.Is(err, client.ErrNoNode):
			return errTaken
		case errors.Is(err, client.ErrBadVersion):
			// By an earlier try that got no answer, which does not count, since nobody
			// knows when it was done; by SetData; or by somebody's Revoke.
			if err := t.catchUp(ctx, s, g); errors.Is(err, errTaken) {
				return err
			}
		case !unanswered(err) && !errors.Is(err, client.ErrSessionExpired):
			return err
		}
	}
	return ctx.Err()
}

// catchUp finds out what the znode is like now.
func (t *tenancy) catchUp(ctx context.Context, s recipes.Session, g *grant) error {
	data, stat, err := s.Get(ctx, t.path)
	if errors.Is(err, client.ErrNoNode) {
		return errTaken
	}
	if err != nil {
		return err
	}
	if string(data) == revoked {
		g.askedToRevoke()
	} else {
		t.data = data
	}
	t.mu.Lock()
	t.version = stat.Version
	t.mu.Unlock()
	return nil
}

// leave deletes the znode, in the background if it must be.
func (t *tenancy) leave(ctx context.Context) error {
	err := t.delete(ctx)
	if err != nil {
		go t.remove()
	}
	return err
}

// delete deletes the znode, whose name is nobody else's.
func (t *tenancy) delete(ctx context.Context) error {
	s, err := t.conn.Session(ctx)
	if err != nil {
		return err
	}
	if t.path == "" {
		if _, err := t.look(ctx); err != nil || t.path == "" {
			return err
		}
	}
	if err := s.Delete(ctx, t.path, client.AnyVersion); err != nil && !errors.Is(err, client.ErrNoNode) {
		return err
	}
	return nil
}

// remove deletes the znode in the background. It gives up when others may do it.
func (t *tenancy) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*t.lease)
	defer cancel()
	for ctx.Err() == nil {
		err := t.delete(ctx)
		if err == nil || !unanswered(err) && !errors.Is(err, client.ErrSessionExpired) {
			return
		}
		if recipes.Sleep(ctx, retryRemoval) != nil {
			return
		}
	}
}

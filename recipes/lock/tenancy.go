package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// errLeaseOver means that the lease has run out.
var errLeaseOver = errors.New("its time has run out")

// errTaken means that the holder's znode is gone, i.e. another client may hold the lease.
var errTaken = errors.New("its znode has gone")

// tenancy is a held [LeaseLock]: one persistent znode, which may be renewed.
type tenancy struct {
	conn  recipes.Conn
	dir   string
	mark  string
	lease time.Duration
	renew bool
	data  []byte // the znode's data; only keep uses it while keep runs
	path  string
	// known is the session that got the reply to the create, or 0. That session can read the
	// znode without a sync.
	known int64

	mu      sync.Mutex
	version int32
	until   time.Time
}

// versionAtCreate is the version of a znode that was not written since its creation.
const versionAtCreate = 0

// begin finds the znode and creates a grant for it. Without a znode, begin fails with
// errVanished.
func (t *tenancy) begin(ctx context.Context, sent time.Time) (*grant, error) {
	stat, err := t.find(ctx)
	if err != nil {
		go t.remove()
		return nil, err
	}
	if t.path == "" {
		return nil, errVanished
	}
	// If the znode has been written since its creation, there may have been a Revoke. We
	// pass the version of a new znode, so that the first renewal finds the Revoke.
	t.extend(sent, versionAtCreate)
	g := newGrant(t.path, Token(stat.Czxid))
	g.session = t.conn.Session
	g.valid, g.deadline, g.finish = t.valid, t.deadline, t.leave
	if err := t.valid(); err != nil {
		go t.remove()
		return nil, errVanished // the reply came after the end of the lease
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
			path := recipe.Join(t.dir, name)
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

// extend records a create or a renewal sent at the time sent.
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

// keep renews the lease, if t.renew is set, and ends the grant when the lease ends.
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
		if recipe.Sleep(ctx, wait) != nil {
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

// extendNow tries to renew the lease until it succeeds or the lease has ended.
func (t *tenancy) extendNow(ctx context.Context, g *grant) error {
	ctx, cancel := context.WithDeadline(ctx, t.deadline())
	defer cancel()
	for ctx.Err() == nil {
		sent := time.Now()
		s, err := t.conn.Session(ctx)
		if err != nil {
			return err
		}
		stat, err := t.write(ctx, s, g)
		switch {
		case err == nil:
			t.extend(sent, stat.Version)
			return nil
		case errors.Is(err, client.ErrNoNode), errors.Is(err, errTaken):
			return errTaken
		case errors.Is(err, client.ErrBadVersion):
			// The version may have changed because of SetData, a Revoke, or an earlier
			// attempt without a reply. We don't count such an attempt, because we don't
			// know when it was executed.
			if err := t.catchUp(ctx, s, g); errors.Is(err, errTaken) {
				return err
			}
		case !unanswered(err) && !errors.Is(err, client.ErrSessionExpired):
			return err
		}
	}
	return ctx.Err()
}

// write writes the znode's data again if the znode has its last known version. At version
// -1, where a Set has no condition, we read the znode first: it may have changed because of
// SetData or a Revoke.
func (t *tenancy) write(ctx context.Context, s recipes.Session, g *grant) (client.Stat, error) {
	if t.lastVersion() == client.AnyVersion {
		if err := t.catchUp(ctx, s, g); err != nil {
			return client.Stat{}, err
		}
	}
	return s.Set(ctx, t.path, t.data, t.lastVersion())
}

func (t *tenancy) lastVersion() int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// catchUp reads the znode's current version and data.
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

// leave deletes the znode, in the background if the first attempt fails.
func (t *tenancy) leave(ctx context.Context) error {
	err := t.delete(ctx)
	if err != nil {
		go t.remove()
	}
	return err
}

// delete deletes the znode. Its name is unique.
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

// remove deletes the znode in the background. We give up when other clients may delete it.
func (t *tenancy) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*t.lease)
	defer cancel()
	for ctx.Err() == nil {
		err := t.delete(ctx)
		if err == nil || !unanswered(err) && !errors.Is(err, client.ErrSessionExpired) {
			return
		}
		if recipe.Sleep(ctx, retryRemoval) != nil {
			return
		}
	}
}

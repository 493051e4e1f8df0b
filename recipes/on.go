package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/zkgo/zkgo/client"
)

// retryPause is the pause before an operation is retried. It matters only while we are
// connected: otherwise the retry waits for the next connection anyway.
const retryPause = 20 * time.Millisecond

// On returns the [Conn] for c. Paths are relative to c, which may be a view.
func On(c *client.Client) Conn { return onClient{c} }

type onClient struct{ c *client.Client }

func (o onClient) Session(ctx context.Context) (Session, error) {
	s, err := o.c.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	// Under this policy the client retries reads, and writes only after ErrThrottledOp,
	// because we don't mark them as idempotent. It also retries the creation of missing
	// parents.
	return &session{id: s.ID, c: o.c.InSession(s.ID).Retrying(client.RetryForever(retryPause))}, nil
}

type session struct {
	id int64
	c  *client.Client
}

func (s *session) ID() int64 { return s.id }

func (s *session) Create(ctx context.Context, path string, data []byte, mode Mode, acl []client.ACL) (string, error) {
	opts := createOptions(mode, acl)
	if mode != Container {
		return s.c.Create(ctx, path, data, opts...)
	}
	// The parents of path may be outside the client's chroot, so only the client can
	// create them.
	created, err := s.c.Create(ctx, path, data, append(opts, client.CreateParentContainers)...)
	if errors.Is(err, client.ErrUnimplemented) {
		return s.c.Create(ctx, path, data, append(createOptions(Persistent, acl), client.CreateParents)...)
	}
	return created, err
}

// CreateTTL makes session a [TTLCreator].
func (s *session) CreateTTL(ctx context.Context, path string, data []byte, ttl time.Duration, acl []client.ACL) (string, error) {
	return s.c.Create(ctx, path, data, append(createOptions(Persistent, acl), client.WithTTL(ttl))...)
}

func createOptions(mode Mode, acl []client.ACL) []client.CreateOption {
	opts := []client.CreateOption{mode.flags()}
	if acl != nil {
		opts = append(opts, client.WithACL(acl...))
	}
	return opts
}

func (m Mode) flags() client.CreateFlag {
	switch m {
	case PersistentSequential:
		return client.Sequential
	case Ephemeral:
		return client.Ephemeral
	case EphemeralSequential:
		return client.Ephemeral | client.Sequential
	case Container:
		return client.Container
	}
	return 0
}

func (s *session) Delete(ctx context.Context, path string, version int32) error {
	return s.c.Delete(ctx, path, version)
}

func (s *session) Set(ctx context.Context, path string, data []byte, version int32) (client.Stat, error) {
	return s.c.Set(ctx, path, data, version)
}

func (s *session) Multi(ctx context.Context, ops ...Op) error {
	list := make([]client.Op, len(ops))
	for i, op := range ops {
		switch op.Kind {
		case OpCreate:
			list[i] = client.CreateOp(op.Path, op.Data, createOptions(op.Mode, op.ACL)...)
		case OpSet:
			list[i] = client.SetOp(op.Path, op.Data, op.Version)
		case OpDelete:
			list[i] = client.DeleteOp(op.Path, op.Version)
		default:
			list[i] = client.CheckOp(op.Path, op.Version)
		}
	}
	_, err := s.c.Multi(ctx, list...)
	return err
}

func (s *session) Exists(ctx context.Context, path string) (client.Stat, bool, error) {
	return s.c.Exists(ctx, path)
}

func (s *session) Get(ctx context.Context, path string) ([]byte, client.Stat, error) {
	return s.c.Get(ctx, path)
}

func (s *session) Children(ctx context.Context, path string) ([]string, client.Stat, error) {
	return s.c.Children(ctx, path)
}

func (s *session) ExistsW(ctx context.Context, path string) (client.Stat, bool, Watch, error) {
	stat, ok, w, err := s.c.ExistsW(ctx, path)
	return stat, ok, watch{w}, err
}

func (s *session) GetW(ctx context.Context, path string) ([]byte, client.Stat, Watch, error) {
	data, stat, w, err := s.c.GetW(ctx, path)
	return data, stat, watch{w}, err
}

func (s *session) ChildrenW(ctx context.Context, path string) ([]string, client.Stat, Watch, error) {
	names, stat, w, err := s.c.ChildrenW(ctx, path)
	return names, stat, watch{w}, err
}

// WatchRecursive makes session a [RecursiveWatcher].
func (s *session) WatchRecursive(ctx context.Context, path string) (Watch, error) {
	w, err := s.c.WatchRecursive(ctx, path)
	if err != nil {
		return nil, err
	}
	return watch{w}, nil
}

func (s *session) Sync(ctx context.Context, path string) error { return s.c.Sync(ctx, path) }

// watch adapts a client's watch to [Watch].
type watch struct{ w *client.Watch }

func (w watch) Events() <-chan client.Event { return w.w.Events() }

// Remove also asks the server. It ignores the result: if the connection is lost, so is the
// server's watch.
func (w watch) Remove(ctx context.Context) { _ = w.w.Remove(ctx) }

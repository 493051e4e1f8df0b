package gozk

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
)

// request describes a call.
type request struct {
	op, path string
	write    bool
	// stray undoes a write that happened in a later session. It may be nil.
	stray func(result any)
}

type answer[T any] struct {
	value T
	err   error
	over  error // why the session had ended, or nil
}

// call makes a call of the *zk.Conn in the session. We retry reads until the server
// replies. We retry a write only if the server refused it with ErrThrottledOp, because in
// that case it had no effect.
func call[T any](ctx context.Context, s *session, r request, f func() (T, error)) (T, error) {
	var none T
	for {
		if err := s.ready(ctx); err != nil {
			return none, r.unsent(err)
		}
		replied := make(chan answer[T], 1)
		go func() {
			value, err := f()
			over := s.over()
			if over != nil && err == nil && r.stray != nil {
				r.stray(value)
			}
			replied <- answer[T]{value, err, over}
		}()
		var got answer[T]
		select {
		case got = <-replied:
		case <-ctx.Done():
			return none, &client.Error{Op: r.op, Path: r.path, Unknown: r.write, Err: context.Cause(ctx)}
		}
		switch {
		case got.over != nil:
			return none, r.ended(got.over, got.err)
		case got.err == nil:
			return got.value, nil
		case errors.Is(got.err, zk.ErrNoServer):
			continue // the request was not sent
		}
		err := r.failed(got.err)
		again := err.Code == client.ErrThrottledOp || err.Code == client.ErrConnectionLoss && !r.write
		if !again {
			return none, err
		}
		if err := recipe.Sleep(ctx, pause); err != nil {
			return none, r.unsent(err)
		}
	}
}

// ready waits for a connection in this session.
func (s *session) ready(ctx context.Context) error {
	for {
		change := s.a.d.change()
		if err := s.over(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if s.a.zk.State() == zk.StateHasSession {
			return nil
		}
		if err := s.a.wait(ctx, change); err != nil {
			return err
		}
	}
}

// over returns why the session has ended, or nil if the client doesn't know of an end.
func (s *session) over() error {
	if s.a.isClosed() {
		return client.ErrClosed
	}
	if s.a.zk.SessionID() != s.id {
		return client.ErrSessionExpired
	}
	return nil
}

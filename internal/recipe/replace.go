package recipe

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// wrapping is the name of the znode that serializes writes at version -1.
const wrapping = "wrapping-version"

// Replace writes data to the persistent znode at path if the znode has not changed since
// the caller read old. If another client has written, deleted or created the znode since
// then, the error matches [client.ErrBadVersion] or [client.ErrNoNode]. Like Set, Replace
// tries once, and its error matches [client.ErrUnknownOutcome] if the write may or may not
// have been executed.
//
// We can't always use Set: versions wrap after 2³¹ writes, and a Set at version -1
// overwrites any version. At version -1, we therefore keep an ephemeral znode below path
// while we read the znode again and write it, so that only one of several concurrent calls
// of Replace succeeds. If the session ends, its ephemeral znode disappears, and the server
// refuses the write.
func Replace(ctx context.Context, s recipes.Session, path string, data []byte, old client.Stat) (client.Stat, error) {
	if old.Version != client.AnyVersion {
		return s.Set(ctx, path, data, old.Version)
	}
	turn := Join(path, wrapping)
	token := []byte(rand.Text()) // distinguishes this call's znode from the znodes of other calls in this session
	if err := takeTurn(ctx, s, turn, token); err != nil {
		return client.Stat{}, err
	}
	defer endTurn(ctx, s, turn, token)
	_, now, err := s.Get(ctx, path)
	if err != nil {
		return client.Stat{}, err
	}
	if now.Version != old.Version || now.Mzxid != old.Mzxid {
		return client.Stat{}, fmt.Errorf("%s: another client has written: %w", path, client.ErrBadVersion)
	}
	return s.Set(ctx, path, data, client.AnyVersion)
}

// takeTurn creates the znode turn. If turn exists already, takeTurn waits until it is
// gone and returns an error that matches [client.ErrBadVersion], because its owner
// has probably written. If takeTurn fails, it leaves no znode of this call.
func takeTurn(ctx context.Context, s recipes.Session, turn string, token []byte) error {
	_, err := s.Create(ctx, turn, token, recipes.Ephemeral, nil)
	if errors.Is(err, client.ErrUnknownOutcome) {
		unknown := err
		if ctx.Err() == nil {
			err = findTurn(ctx, s, turn, token)
		}
		if err != nil && !errors.Is(err, client.ErrNodeExists) && !errors.Is(err, client.ErrBadVersion) {
			cleanUp(func() { deleteTurn(context.WithoutCancel(ctx), s, turn, token, unknown) })
		}
	}
	if !errors.Is(err, client.ErrNodeExists) {
		return err
	}
	if err := AwaitChange(ctx, s, turn); err != nil {
		return err
	}
	return fmt.Errorf("%s: another client has probably written: %w", turn, client.ErrBadVersion)
}

// findTurn finds out whether a create was executed when its reply was lost. It returns nil
// if the znode exists and has this token.
func findTurn(ctx context.Context, s recipes.Session, turn string, token []byte) error {
	if err := s.Sync(ctx, turn); err != nil {
		return err
	}
	data, _, err := s.Get(ctx, turn)
	switch {
	case errors.Is(err, client.ErrNoNode):
		return fmt.Errorf("%s: %w", turn, client.ErrBadVersion) // we have written nothing: the caller should read again
	case err == nil && !bytes.Equal(data, token):
		return client.ErrNodeExists
	}
	return err
}

// endTurn deletes the znode turn. The znode disappears with its session at the latest.
func endTurn(ctx context.Context, s recipes.Session, turn string, token []byte) {
	ctx = context.WithoutCancel(ctx)
	cleanUp(func() {
		deleteTurn(ctx, s, turn, token, s.Delete(ctx, turn, client.AnyVersion))
	})
}

// deleteTurn deletes the znode turn if it has this token. err is the error of the latest
// write. We have to check the token: if the reply to an earlier delete was lost, the znode
// may belong to another call by now.
func deleteTurn(ctx context.Context, s recipes.Session, turn string, token []byte, err error) {
	open := func() bool { return errors.Is(err, client.ErrUnknownOutcome) || recipes.Again(ctx, err) }
	for open() {
		if err = findTurn(ctx, s, turn, token); err == nil {
			err = s.Delete(ctx, turn, client.AnyVersion)
		}
	}
}

// cleanUp runs do. If do lasts longer than tidying, it continues in the background.
func cleanUp(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	t := time.NewTimer(tidying)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

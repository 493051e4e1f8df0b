package recipes

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/client"
)

// wrapping is the name of the znode that serializes writes at version -1.
const wrapping = "wrapping-version"

// Replace writes data to the persistent znode at path if it is still as old says. If
// another client has written, deleted or created it since, the error matches
// [client.ErrBadVersion] or [client.ErrNoNode]. Like Set, Replace tries once, and its
// error matches [client.ErrUnknownOutcome] if the write may or may not have been done.
//
// Set cannot do this at every version: versions wrap after 2³¹ writes, and a Set at
// version -1 overwrites whatever there is. There Replace holds an ephemeral znode
// below path while it reads once more and writes, so that of all callers of Replace
// one succeeds. The server refuses the write if the session, and with it that znode,
// has ended.
func Replace(ctx context.Context, s Session, path string, data []byte, old client.Stat) (client.Stat, error) {
	if old.Version != client.AnyVersion {
		return s.Set(ctx, path, data, old.Version)
	}
	turn := Join(path, wrapping)
	if err := takeTurn(ctx, s, turn); err != nil {
		return client.Stat{}, err
	}
	defer endTurn(ctx, s, turn)
	_, now, err := s.Get(ctx, path)
	if err != nil {
		return client.Stat{}, err
	}
	if now.Version != old.Version || now.Mzxid != old.Mzxid {
		return client.Stat{}, fmt.Errorf("%s: another client has written: %w", path, client.ErrBadVersion)
	}
	return s.Set(ctx, path, data, client.AnyVersion)
}

// takeTurn creates the znode turn. If there is one already it waits for its end, and
// the error matches [client.ErrBadVersion]: its owner has probably written.
func takeTurn(ctx context.Context, s Session, turn string) error {
	token := []byte(rand.Text()) // tells this call's znode from that of another in this session
	_, err := s.Create(ctx, turn, token, Ephemeral, nil)
	if errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil {
		err = findTurn(ctx, s, turn, token)
	}
	if !errors.Is(err, client.ErrNodeExists) {
		return err
	}
	if err := AwaitChange(ctx, s, turn); err != nil {
		return err
	}
	return fmt.Errorf("%s: another client has held it: %w", turn, client.ErrBadVersion)
}

// findTurn finds out what became of a create that was not answered.
func findTurn(ctx context.Context, s Session, turn string, token []byte) error {
	if err := s.Sync(ctx, turn); err != nil {
		return err
	}
	data, _, err := s.Get(ctx, turn)
	switch {
	case errors.Is(err, client.ErrNoNode):
		return fmt.Errorf("%s: %w", turn, client.ErrBadVersion) // nothing was written: the caller looks again
	case err == nil && !bytes.Equal(data, token):
		return client.ErrNodeExists
	}
	return err
}

// endTurn deletes the znode turn, in the background if the server takes longer than
// tidying. The znode ends with its session at the latest.
func endTurn(ctx context.Context, s Session, turn string) {
	done := make(chan struct{})
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(done)
		for Again(ctx, s.Delete(ctx, turn, client.AnyVersion)) {
		}
	}()
	t := time.NewTimer(tidying)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

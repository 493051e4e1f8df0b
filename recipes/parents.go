package recipes

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/client"
)

// EnsureContainers creates path and its missing parents as containers. If the server
// supports containers, it deletes each container some time after its last child is gone.
func EnsureContainers(ctx context.Context, s Session, path string) error {
	if path == "" {
		return nil
	}
	if path == "/" {
		// The root is missing if it is a chroot that doesn't exist yet.
		if _, there, err := s.Exists(ctx, path); err != nil || there {
			return err
		}
	}
	parent := "/"
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		parent = path[:i]
	}
	for {
		_, err := s.Create(ctx, path, nil, Container, nil)
		switch {
		case err == nil, errors.Is(err, client.ErrNodeExists):
			return nil
		case errors.Is(err, client.ErrNoNode) && parent != "/":
			err = EnsureContainers(ctx, s, parent)
		}
		if err != nil && !Again(ctx, err) {
			return err
		}
	}
}

// Again reports whether an operation that failed with err may succeed if it is retried
// immediately: the connection was lost, and ctx has not ended. You should retry only
// operations that can safely run twice.
func Again(ctx context.Context, err error) bool {
	return errors.Is(err, client.ErrConnectionLoss) && !errors.Is(err, client.ErrClosed) && ctx.Err() == nil
}

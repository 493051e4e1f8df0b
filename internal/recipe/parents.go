package recipe

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// EnsureContainers creates path and its missing parents as containers. A server that
// supports containers deletes each some time after its last child is gone.
func EnsureContainers(ctx context.Context, s recipes.Session, path string) error {
	if path == "" {
		return nil
	}
	if path == "/" {
		// The root is missing if it is a chroot that doesn't exist yet.
		if _, there, err := s.Exists(ctx, path); err != nil || there {
			return err
		}
	}
	for {
		_, err := s.Create(ctx, path, nil, recipes.Container, nil)
		switch {
		case err == nil, errors.Is(err, client.ErrNodeExists):
			return nil
		case errors.Is(err, client.ErrNoNode) && Parent(path) != "/":
			err = EnsureContainers(ctx, s, Parent(path))
		}
		if err != nil && !Again(ctx, err) {
			return err
		}
	}
}

// Parent returns the parent of path.
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Join returns the path of the child name of dir.
func Join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// Again reports whether an operation that failed with err may succeed if it is
// retried immediately: the connection was lost, and ctx has not ended. Only an
// operation that may be done twice should be retried.
func Again(ctx context.Context, err error) bool {
	return errors.Is(err, client.ErrConnectionLoss) && !errors.Is(err, client.ErrClosed) && ctx.Err() == nil
}

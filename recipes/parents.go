package recipes

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/client"
)

// EnsureContainers creates what is missing of path and above it, as containers:
// a server that has them deletes each some time after its last child has gone.
func EnsureContainers(ctx context.Context, s Session, path string) error {
	if path == "/" || path == "" {
		return nil
	}
	for {
		_, err := s.Create(ctx, path, nil, Container, nil)
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

// Parent returns the path above path.
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Join returns the path of a child.
func Join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// Again reports whether an operation that failed with err may have better luck
// at once: its connection broke, and ctx has not ended. Trying again is right
// only for what may be done twice.
func Again(ctx context.Context, err error) bool {
	return errors.Is(err, client.ErrConnectionLoss) && !errors.Is(err, client.ErrClosed) && ctx.Err() == nil
}

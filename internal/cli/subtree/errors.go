package subtree

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
)

// Reasons for which nothing is written, each with an option that lifts it.
var (
	// ErrTargetExists is the cause without [Merge] and [Overwrite].
	ErrTargetExists = errors.New("the target exists already")
	// ErrNoParent is the cause without ApplyOptions.Parents.
	ErrNoParent = errors.New("the parent of the target does not exist")
	// ErrHiddenACL is the cause when the server shows an ACL in part only.
	ErrHiddenACL = errors.New("its ACL cannot be read whole without the permission to administer it")
	// ErrProtected is the cause for the root and for ZooKeeper's own znodes.
	ErrProtected = errors.New("this znode cannot be deleted")
)

// ConflictError says that a znode is not as it has to be for what was to be done
// with it: somebody else has changed it. Nothing was done to it.
type ConflictError struct {
	// Path of the znode.
	Path string
	// What is wrong with it.
	What string
	// Err is the server's refusal, if that is how it was noticed.
	Err error
}

// Error names path and reason.
func (e *ConflictError) Error() string { return e.Path + ": " + e.What }

// Unwrap returns the server's refusal.
func (e *ConflictError) Unwrap() error { return e.Err }

// conflict tells refusals that mean a conflict from others.
func conflict(path string, err error) error {
	var what string
	switch {
	case errors.Is(err, client.ErrNodeExists):
		what = "is there already"
	case errors.Is(err, client.ErrBadVersion):
		what = "was changed by somebody else meanwhile"
	case errors.Is(err, client.ErrNoNode):
		what = "it or its parent was deleted by somebody else meanwhile"
	case errors.Is(err, client.ErrNotEmpty):
		what = "got children meanwhile"
	case errors.Is(err, client.ErrNoChildrenForEphemerals):
		what = "its parent is ephemeral and cannot have children"
	case errors.Is(err, client.ErrUnimplemented):
		return fmt.Errorf("%s: the server knows no such kind of znode (for a time to live it needs extendedTypesEnabled=true): %w", path, err)
	default:
		return fmt.Errorf("%s: %w", path, err)
	}
	return &ConflictError{Path: path, What: what, Err: err}
}

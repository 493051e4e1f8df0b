package subtree

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
)

// Errors before anything is written. Each has an option that avoids it.
var (
	// ErrTargetExists is the error without [Merge] and [Overwrite].
	ErrTargetExists = errors.New("the target exists already")
	// ErrNoParent is the error without ApplyOptions.Parents.
	ErrNoParent = errors.New("the parent of the target does not exist")
	// ErrHiddenACL is the error if the server hides a part of an ACL.
	ErrHiddenACL = errors.New("reading its complete ACL requires the admin permission")
	// ErrProtected is the error for the root and for ZooKeeper's own znodes.
	ErrProtected = errors.New("this znode cannot be deleted")
)

// ConflictError means that another client changed a znode, so the intended operation
// no longer applies. The znode is unchanged by that operation.
type ConflictError struct {
	// Path is the znode's path.
	Path string
	// What describes the conflict.
	What string
	// Err is the server's error, if that revealed the conflict.
	Err error
}

// Error returns the path and the description.
func (e *ConflictError) Error() string { return e.Path + ": " + e.What }

// Unwrap returns the server's error.
func (e *ConflictError) Unwrap() error { return e.Err }

// conflict returns a ConflictError if err means a conflict. Otherwise it adds the path.
func conflict(path string, err error) error {
	var what string
	switch {
	case errors.Is(err, client.ErrNodeExists):
		what = "already exists"
	case errors.Is(err, client.ErrBadVersion):
		what = "was changed by another client"
	case errors.Is(err, client.ErrNoNode):
		what = "it or its parent was deleted by another client"
	case errors.Is(err, client.ErrNotEmpty):
		what = "has children now"
	case errors.Is(err, client.ErrNoChildrenForEphemerals):
		what = "its parent is ephemeral and cannot have children"
	case errors.Is(err, client.ErrUnimplemented):
		return fmt.Errorf("%s: the server does not support this type of znode (a time to live requires extendedTypesEnabled=true): %w", path, err)
	default:
		return fmt.Errorf("%s: %w", path, err)
	}
	return &ConflictError{Path: path, What: what, Err: err}
}

package lock

import "errors"

var (
	// ErrLost means that a [Lease] ended because the session may have ended or another
	// client deleted the lock's znode. The error also wraps the cause.
	ErrLost = errors.New("lock lost")

	// ErrReleased means that a [Lease] ended because it was released. A second Release also
	// returns it.
	ErrReleased = errors.New("lock released")

	// ErrNotAcquired is the error of a TryAcquire when another client is first.
	ErrNotAcquired = errors.New("lock not acquired: another client is first")

	// ErrUpgrade means that an owner of the read lock asked for the write lock. We refuse
	// that, because the owner would wait for itself.
	ErrUpgrade = errors.New("a read lock cannot become a write lock")

	// errVanished means that the waiter's own znode no longer exists.
	errVanished = errors.New("the znode of the waiter has vanished")
)

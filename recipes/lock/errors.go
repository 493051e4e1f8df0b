package lock

import "errors"

var (
	// ErrLost is why a [Lease] ended: the session may have ended, or another client
	// deleted the lock's znode. The error also wraps the cause.
	ErrLost = errors.New("lock lost")

	// ErrReleased is why a [Lease] ended that was released. A second Release also
	// returns it.
	ErrReleased = errors.New("lock released")

	// ErrNotAcquired is the error of a TryAcquire when another client is first.
	ErrNotAcquired = errors.New("lock not acquired: another client is first")

	// ErrUpgrade refuses the write lock to an owner that holds the read lock, because
	// the owner would wait for itself.
	ErrUpgrade = errors.New("a read lock cannot become a write lock")

	// errVanished means that the waiter's own znode no longer exists.
	errVanished = errors.New("the znode of the waiter has vanished")
)

package lock

import "errors"

var (
	// ErrLost is why a [Lease] ended: the session may have ended, or the lock's
	// znode was deleted by somebody else. It is wrapped with what happened.
	ErrLost = errors.New("lock lost")

	// ErrReleased is why a [Lease] ended that was released. A second Release
	// returns it too.
	ErrReleased = errors.New("lock released")

	// ErrNotAcquired is the answer of a TryAcquire when somebody else is first.
	ErrNotAcquired = errors.New("lock not acquired: somebody else is first")

	// ErrUpgrade refuses the write lock to an owner that holds the read lock:
	// waiting for it would be waiting for himself.
	ErrUpgrade = errors.New("a read lock cannot become a write lock")

	// errVanished says that a waiter's own znode is not there any more.
	errVanished = errors.New("the znode of the waiter has vanished")
)

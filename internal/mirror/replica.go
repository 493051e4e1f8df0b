package mirror

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
)

// ErrDigest is the error when the state isn't the ensemble's.
var ErrDigest = errors.New("the state is not what the ensemble has: its digest is another one")

// Replica is the copy of an ensemble's state. A connection of package learner updates it. Its
// methods are safe for concurrent use.
type Replica struct {
	mu     sync.Mutex
	state  *zkfiles.State // nil: nothing has arrived
	status Status
}

var _ learner.Receiver = (*Replica)(nil)

// Status describes a Replica.
type Status struct {
	// Exact reports whether the state is the ensemble's at Zxid. It is false while a
	// snapshot and what belongs to it arrives.
	Exact bool
	Zxid  int64
	// Proposed is the newest zxid that the leader has proposed, of its last ping, and
	// Heard the time of that ping.
	Proposed int64
	Heard    time.Time
	// Snapshots and Transactions count what has arrived, Compared the digests that
	// matched.
	Snapshots, Transactions, Compared int64
	Znodes, Sessions                  int
}

// Zxid returns the newest zxid, for learner.Dial; 0 if there is no exact state.
func (r *Replica) Zxid() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.status.Exact {
		return 0
	}
	return r.status.Zxid
}

// Status returns the current status.
func (r *Replica) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	if r.state != nil {
		s.Znodes, s.Sessions = r.state.Len(), len(r.state.Sessions)
	}
	return s
}

// Take returns the state if it is exact. The Replica is empty afterwards.
func (r *Replica) Take() (*zkfiles.State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.status.Exact {
		return nil, errors.New("mirror: the state of the ensemble has not arrived completely")
	}
	s := r.state
	r.state, r.status.Exact = nil, false
	return s, nil
}

// Snapshot implements learner.Receiver.
func (r *Replica) Snapshot(s *zkfiles.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
	r.status.Exact, r.status.Zxid = false, s.Zxid
	r.status.Snapshots++
	return nil
}

// Commit implements learner.Receiver.
func (r *Replica) Commit(tx *zkfiles.Txn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == nil {
		return fmt.Errorf("mirror: transaction %#x without a state that it belongs to", tx.Zxid)
	}
	if err := r.state.Apply(tx); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	r.status.Zxid = tx.Zxid
	r.status.Transactions++
	return r.compare(tx)
}

// compare compares the state with the digest in a transaction. Until the state is exact, a
// difference means nothing.
func (r *Replica) compare(tx *zkfiles.Txn) error {
	d := tx.Digest
	switch {
	case d == nil || !d.Comparable() || !r.status.Exact:
		return nil
	case d.Value == r.state.Digest():
		r.status.Compared++
		return nil
	}
	r.status.Exact = false
	return fmt.Errorf("mirror: %w: %#x instead of %#x after transaction %#x (%s)", ErrDigest, r.state.Digest(), d.Value, tx.Zxid, tx.Describe())
}

// Synced implements learner.Receiver.
func (r *Replica) Synced() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == nil {
		return errors.New("mirror: the leader sent neither a snapshot nor transactions")
	}
	r.status.Exact = true
	return nil
}

// Ping implements learner.Receiver.
func (r *Replica) Ping(proposed int64, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Proposed, r.status.Heard = proposed, at
	return nil
}

// Revalidated implements learner.Receiver. A Replica has no clients.
func (r *Replica) Revalidated(int64, bool) error { return nil }

// SyncDone implements learner.Receiver.
func (r *Replica) SyncDone(int64, int32) error { return nil }

package recipes

import (
	"context"
	"time"

	"github.com/zkgo/zkgo/client"
)

// Conn is a client as recipes see it. It must be safe for concurrent use.
type Conn interface {
	// Session waits for a session to begin, if there is none, and returns it. It
	// fails when ctx ends and when there will be no other session: with
	// [client.ErrClosed] after the client was closed.
	Session(ctx context.Context) (Session, error)
}

// Session is one session of a client. Every operation is done in this session:
// after its end all fail with [client.ErrSessionExpired] (or [client.ErrClosed]
// if the client was closed), and none is done in a session that follows.
//
// Refusals match the codes of package client with errors.Is. Without a connection
// an operation waits for one. Get, Exists, Children and their variants with a
// watch, and Sync, are repeated until they are answered, the session has ended or
// ctx ends. The others are tried once, and their error matches
// [client.ErrUnknownOutcome] if the operation may or may not have been done, or
// may still be done. It must be safe for concurrent use.
type Session interface {
	// ID is what the server calls the session, and the ephemeralOwner of its
	// znodes.
	ID() int64

	// Create creates a znode and returns its path. A nil acl stands for the
	// client's default.
	Create(ctx context.Context, path string, data []byte, mode Mode, acl []client.ACL) (string, error)
	Delete(ctx context.Context, path string, version int32) error
	Set(ctx context.Context, path string, data []byte, version int32) (client.Stat, error)
	// Multi does all operations or none. If one is refused the error matches its
	// code.
	Multi(ctx context.Context, ops ...Op) error

	Exists(ctx context.Context, path string) (client.Stat, bool, error)
	Get(ctx context.Context, path string) ([]byte, client.Stat, error)
	Children(ctx context.Context, path string) ([]string, client.Stat, error)

	// ExistsW, GetW and ChildrenW leave a one-shot watch, unless they fail.
	ExistsW(ctx context.Context, path string) (client.Stat, bool, Watch, error)
	GetW(ctx context.Context, path string) ([]byte, client.Stat, Watch, error)
	ChildrenW(ctx context.Context, path string) ([]string, client.Stat, Watch, error)

	// Sync makes the reads behind it see every write that was answered before.
	Sync(ctx context.Context, path string) error

	// Hold returns the certainty that the session has not ended, as far as policy
	// asks for it. It has to be released.
	Hold(ctx context.Context, policy LossPolicy) (Hold, error)
}

// Watch is a one-shot watch.
type Watch interface {
	// Events returns a channel that gets the one event, or is closed without one
	// when the watch was removed, or the session has ended.
	Events() <-chan client.Event
	// Remove takes the watch away, from the server too where the client can do
	// that. It waits for the server until ctx ends.
	Remove(ctx context.Context)
}

// RecursiveWatcher is a [Session] that has persistent recursive watches.
type RecursiveWatcher interface {
	// WatchRecursive leaves a watch for the znode at path, which need not exist, and
	// for all below it, until it is removed. Its channel gets any number of events,
	// among them [client.EventResync] when some may be missing; a reader who is slow
	// gets that too. It fails with [client.ErrUnimplemented] where the server has no
	// such watches.
	WatchRecursive(ctx context.Context, path string) (Watch, error)
}

// TTLCreator is a [Session] that can create znodes with a time to live.
type TTLCreator interface {
	// CreateTTL creates a persistent znode that a server deletes when it has no
	// children and was not written for ttl, a positive whole number of milliseconds.
	// It fails with [client.ErrUnimplemented] where the server has none.
	CreateTTL(ctx context.Context, path string, data []byte, ttl time.Duration, acl []client.ACL) (string, error)
}

// Hold tells when a session can no longer be relied on.
type Hold interface {
	// Done is closed when the session may have ended.
	Done() <-chan struct{}
	// Err returns nil until then. It looks at the clock, so that it is right also
	// for a process that was stopped and has just gone on.
	Err() error
	// Deadline is when it ends if no server answers before, on the monotonic
	// clock; the zero Time if that is not known.
	Deadline() time.Time
	// Release ends it. Only the first call does anything.
	Release()
}

// LossPolicy says when what is held in a session counts as lost.
type LossPolicy uint8

const (
	// LostBeforeExpiry is the default: a margin before the server can have ended
	// the session, as [client.LeasePolicy] says. A connection that breaks and
	// comes back in time loses nothing.
	LostBeforeExpiry LossPolicy = iota
	// LostOnDisconnect is as soon as the connection breaks, and otherwise as
	// LostBeforeExpiry: what Curator recommends to its users.
	LostOnDisconnect
	// LostOnExpiry is when the session is known to have ended. Until then somebody
	// else may hold the same already: it is for what needs no exclusion.
	LostOnExpiry
)

// Mode says what kind of znode to create.
type Mode uint8

// The modes. A Container is a Persistent znode on servers that have no
// containers.
const (
	Persistent Mode = iota
	PersistentSequential
	Ephemeral
	EphemeralSequential
	Container
)

// OpKind is the kind of one operation of a transaction.
type OpKind uint8

// The operations that can stand in a transaction.
const (
	OpCreate OpKind = iota
	OpSet
	OpDelete
	OpCheck
)

// Op is one operation of a transaction.
type Op struct {
	Kind    OpKind
	Path    string
	Data    []byte       // OpCreate, OpSet
	Mode    Mode         // OpCreate
	ACL     []client.ACL // OpCreate; nil stands for the client's default
	Version int32        // OpSet, OpDelete, OpCheck
}

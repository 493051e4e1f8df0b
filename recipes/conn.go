package recipes

import (
	"context"
	"time"

	"github.com/zkgo/zkgo/client"
)

// Conn is the client that recipes use. It must be safe for concurrent use.
type Conn interface {
	// Session returns the current session. If there is none, Session waits for one to
	// begin. It fails when ctx ends and when no other session will begin: with
	// [client.ErrClosed] after the client was closed.
	Session(ctx context.Context) (Session, error)
}

// Session is one session of a client. Every operation runs in this session: after the
// session has ended, all operations fail with [client.ErrSessionExpired] (or
// [client.ErrClosed] if the client was closed). They never run in a later session.
//
// Errors from the server match the codes of package client with errors.Is. Without a
// connection, an operation waits for one. Get, Exists, Children, their variants with a
// watch, and Sync are retried until the server replies, the session ends or ctx ends. The
// other operations run at most once, and their error matches [client.ErrUnknownOutcome] if
// the operation may or may not have run, or may still run. If an overloaded server refuses
// an operation with [client.ErrThrottledOp], the operation had no effect and is tried
// again. A Session must be safe for concurrent use.
type Session interface {
	// ID is the server's id of the session, which is also the ephemeralOwner of the
	// session's znodes.
	ID() int64

	// Create creates a znode and returns its path. A nil acl means the client's
	// default.
	Create(ctx context.Context, path string, data []byte, mode Mode, acl []client.ACL) (string, error)
	Delete(ctx context.Context, path string, version int32) error
	Set(ctx context.Context, path string, data []byte, version int32) (client.Stat, error)
	// Multi does all operations or none. If the server refuses one, the error matches
	// its code.
	Multi(ctx context.Context, ops ...Op) error

	Exists(ctx context.Context, path string) (client.Stat, bool, error)
	Get(ctx context.Context, path string) ([]byte, client.Stat, error)
	Children(ctx context.Context, path string) ([]string, client.Stat, error)

	// ExistsW, GetW and ChildrenW set a one-shot watch, unless they fail.
	ExistsW(ctx context.Context, path string) (client.Stat, bool, Watch, error)
	GetW(ctx context.Context, path string) ([]byte, client.Stat, Watch, error)
	ChildrenW(ctx context.Context, path string) ([]string, client.Stat, Watch, error)

	// After Sync, reads see every write that any client got a reply for before the Sync.
	Sync(ctx context.Context, path string) error

	// Hold returns a [Hold] on the session, which ends when the session may have
	// ended, as policy defines it. The caller must release it.
	Hold(ctx context.Context, policy LossPolicy) (Hold, error)
}

// Watch is a one-shot watch.
type Watch interface {
	// Events returns a channel that receives the watch's only event. The channel is closed
	// without an event when the watch is removed or the session ends.
	Events() <-chan client.Event
	// Remove removes the watch, on the server, too, if the client can do that. It
	// waits for the server until ctx ends.
	Remove(ctx context.Context)
}

// RecursiveWatcher is a [Session] that supports persistent recursive watches.
type RecursiveWatcher interface {
	// WatchRecursive watches the znode at path, which need not exist, and everything
	// below it, until the watch is removed. Its channel gets any number of events.
	// [client.EventResync] means that some events may be missing, e.g. because the
	// reader was too slow. WatchRecursive fails with [client.ErrUnimplemented] if the
	// server has no such watches.
	WatchRecursive(ctx context.Context, path string) (Watch, error)
}

// TTLCreator is a [Session] that can create znodes with a time to live.
type TTLCreator interface {
	// CreateTTL creates a persistent znode that the server deletes when it has no
	// children and was not written for ttl, a positive whole number of milliseconds.
	// CreateTTL fails with [client.ErrUnimplemented] if the server doesn't support
	// TTL znodes.
	CreateTTL(ctx context.Context, path string, data []byte, ttl time.Duration, acl []client.ACL) (string, error)
}

// Hold reports when a session can no longer be relied on.
type Hold interface {
	// Done is closed when the session may have ended.
	Done() <-chan struct{}
	// Err returns nil until then. It checks the clock, so the result is correct even if the
	// process was suspended and has just resumed.
	Err() error
	// Deadline returns the time at which the hold ends unless a server replies before, on
	// the monotonic clock. It returns the zero Time if that time is unknown.
	Deadline() time.Time
	// Release ends the hold. Only the first call has an effect.
	Release()
}

// LossPolicy decides when we consider a session, and the locks held in it, lost.
type LossPolicy uint8

const (
	// LostBeforeExpiry is the default: we report the loss a margin before the server can
	// end the session; see [client.LeasePolicy]. If a connection breaks and is restored in
	// time, nothing is lost.
	LostBeforeExpiry LossPolicy = iota
	// LostOnDisconnect reports the loss as soon as the connection breaks, and otherwise
	// like LostBeforeExpiry. Curator recommends this to its users.
	LostOnDisconnect
	// LostOnExpiry reports the loss when the client knows that the session has ended.
	// Another client may hold the same resource before that, so you should use this policy
	// only where you don't need exclusion.
	LostOnExpiry
)

// Mode is the kind of znode to create.
type Mode uint8

// The modes. On servers without containers, a Container is a Persistent znode.
const (
	Persistent Mode = iota
	PersistentSequential
	Ephemeral
	EphemeralSequential
	Container
)

// OpKind is the kind of one operation of a transaction.
type OpKind uint8

// The operations of a transaction.
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
	ACL     []client.ACL // OpCreate; nil means the client's default
	Version int32        // OpSet, OpDelete, OpCheck
}

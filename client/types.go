package client

import "github.com/zkgo/zkgo/proto"

// The protocol's types and values, so that a program imports this package only.
type (
	// Stat is a znode's metadata. Times are milliseconds since the Unix epoch on
	// the leader's clock.
	Stat = proto.Stat
	// ACL grants permissions to an identity.
	ACL = proto.ACL
	// ID names somebody under an authentication scheme.
	ID = proto.ID
	// Perms is a set of permissions.
	Perms = proto.Perms
	// Code is a refusal of the server, and the sentinel to compare it with:
	// errors.Is(err, client.ErrNoNode).
	Code = proto.Code
)

// The permissions.
const (
	PermRead   = proto.PermRead
	PermWrite  = proto.PermWrite
	PermCreate = proto.PermCreate
	PermDelete = proto.PermDelete
	PermAdmin  = proto.PermAdmin
	PermAll    = proto.PermAll
)

// AnyVersion as the version of a request matches every version of a znode, and as
// the version of a [Reconfiguration] every configuration.
const AnyVersion = -1

// WorldACL grants perms to everybody.
func WorldACL(perms Perms) []ACL {
	return []ACL{{Perms: perms, ID: ID{Scheme: "world", ID: "anyone"}}}
}

// CreatorACL grants perms to every identity that the connection has proved by
// the time of the request (the server expands it). It is refused with
// [ErrInvalidACL] if there is none.
func CreatorACL(perms Perms) []ACL {
	return []ACL{{Perms: perms, ID: ID{Scheme: "auth"}}}
}

// EventType says what happened.
type EventType int32

// The event types. A server sends those from EventNodeCreated to
// EventNodeChildrenChanged.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4

	// EventResync comes on persistent watches only: events may be missing before
	// it, so what they stand for has to be read anew. That is so after a
	// reconnect, since a server does not tell what happened meanwhile, and when
	// the watch's channel was full. Its path is the watch's.
	EventResync EventType = -100
)

// String returns the name that ZooKeeper's Java API uses.
func (t EventType) String() string {
	switch t {
	case EventNodeCreated:
		return "NodeCreated"
	case EventNodeDeleted:
		return "NodeDeleted"
	case EventNodeDataChanged:
		return "NodeDataChanged"
	case EventNodeChildrenChanged:
		return "NodeChildrenChanged"
	case EventResync:
		return "Resync"
	}
	return "Unknown"
}

// Event tells that a znode changed. It says what kind of change and where, not
// what the znode holds now.
type Event struct {
	Type EventType
	// Path is seen from the Client that set the watch: without its chroot and
	// namespace.
	Path string
	// Zxid of the transaction; −1 before ZooKeeper 3.9, for what is caught up with
	// after a reconnect, and for EventResync.
	Zxid int64
}

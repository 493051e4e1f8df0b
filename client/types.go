package client

import "github.com/zkgo/zkgo/proto"

// The protocol's types and values. We repeat them here so that a program only needs to
// import this package.
type (
	// Stat is a znode's metadata. Times are in milliseconds since the Unix epoch, by
	// the leader's clock.
	Stat = proto.Stat
	// ACL grants permissions to an identity.
	ACL = proto.ACL
	// ID names an identity under an authentication scheme.
	ID = proto.ID
	// Perms is a set of permissions.
	Perms = proto.Perms
	// Code is a server's error code. It is also the sentinel to compare an error
	// with: errors.Is(err, client.ErrNoNode).
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

// AnyVersion in a request matches every version of a znode, and in a
// [Reconfiguration] every version of the configuration.
const AnyVersion = -1

// WorldACL grants perms to any client.
func WorldACL(perms Perms) []ACL {
	return []ACL{{Perms: perms, ID: ID{Scheme: "world", ID: "anyone"}}}
}

// CreatorACL grants perms to every identity that the connection has authenticated by the
// time of the request (the server expands it). If the connection has no identity, the
// server refuses the request with [ErrInvalidACL].
func CreatorACL(perms Perms) []ACL {
	return []ACL{{Perms: perms, ID: ID{Scheme: "auth"}}}
}

// EventType is the kind of change that an [Event] reports.
type EventType int32

// The event types. Servers send only EventNodeCreated to EventNodeChildrenChanged.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4

	// EventResync occurs only on persistent watches. It means that events before it may be
	// missing, so the reader should read the znodes again. The Client sends it after a
	// reconnect, because the server doesn't report what happened in the meantime, and when
	// the watch's channel was full. Its path is the watch's path.
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

// Event reports a change of a znode. It contains the kind of change and the path, not the
// znode's new state.
type Event struct {
	Type EventType
	// Path is relative to the chroot and namespace of the Client that set the watch.
	Path string
	// Zxid is the transaction's zxid. It is −1 from servers before ZooKeeper 3.9, for
	// events that were missed during a disconnect, and for EventResync.
	Zxid int64
}

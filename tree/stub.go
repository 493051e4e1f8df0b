// Package tree holds the znodes.
package tree

import (
	"io"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Policy holds the leader's switches, carried by the log.
type Policy uint32

// The switches.
const (
	SkipACL Policy = 1 << iota
	ExtendedTypes
	EnforceQuota
	Emulate353TTL
	SchemeX509
	SchemeSASL
	ReconfigEnabled
)

// Txn is what a transaction needs besides its request.
type Txn struct {
	Zxid    int64
	Time    int64 // milliseconds
	Session int64
	IDs     []proto.ID
	Policy  Policy
}

// Event is something watchable.
type Event struct {
	Type proto.EventType
	Path string
	Zxid int64
	ACL  []proto.ACL
}

// Result is the outcome of one transaction or of one operation in a multi.
type Result struct {
	Op     proto.Op
	Code   proto.Code
	Path   string
	Stat   proto.Stat
	Multi  []Result
	Events []Event
}

// AppendBody appends the reply body.
func (r *Result) AppendBody(b []byte) []byte { return b }

// Node is a znode.
type Node struct{}

// Tree holds the znodes.
type Tree struct{ mu sync.RWMutex }

// Reap names a container or TTL znode that may be removed.
type Reap struct {
	Path         string
	Czxid, Mzxid int64
}

// Decode reads r.
func (r *Reap) Decode(d *proto.Reader) { r.Path = d.String(); r.Czxid = d.Long(); r.Mzxid = d.Long() }

// Append appends r to b.
func (r *Reap) Append(b []byte) []byte {
	return proto.AppendLong(proto.AppendLong(proto.AppendString(b, r.Path), r.Czxid), r.Mzxid)
}

// Snapshot is a picture of the tree.
type Snapshot struct{}

func (s *Snapshot) WriteTo(w io.Writer) (int64, error) { return 0, nil }
func (s *Snapshot) Release()                           {}

func New() *Tree { return &Tree{} }

func (t *Tree) Lock()    { t.mu.Lock() }
func (t *Tree) Unlock()  { t.mu.Unlock() }
func (t *Tree) RLock()   { t.mu.RLock() }
func (t *Tree) RUnlock() { t.mu.RUnlock() }

func (t *Tree) Apply(tx *Txn, op proto.Op, req proto.Record) *Result { return nil }
func (t *Tree) Advance(zxid int64)                                   {}
func (t *Tree) SetConfig(tx *Txn, text []byte, version int32) *Result {
	return nil
}
func (t *Tree) Snapshot() *Snapshot       { return nil }
func (t *Tree) Restore(r io.Reader) error { return nil }

func (t *Tree) LastZxid() int64                         { return 0 }
func (t *Tree) Get(path string) *Node                   { return nil }
func (n *Node) Path() string                            { return "" }
func (n *Node) Data() []byte                            { return nil }
func (n *Node) ACL() []proto.ACL                        { return nil }
func (n *Node) Stat(*proto.Stat)                        {}
func (n *Node) NumChildren() int                        { return 0 }
func (n *Node) Children(yield func(name string) bool)   {}
func (t *Tree) AppendChildren(b []byte, n *Node) []byte { return b }
func (t *Tree) Ephemerals(session int64) []string       { return nil }
func (t *Tree) EphemeralSessions() map[int64][]string   { return nil }
func (t *Tree) CountDescendants(n *Node) int            { return 0 }
func (t *Tree) NodeCount() int                          { return 0 }
func (t *Tree) EphemeralCount() int                     { return 0 }
func (t *Tree) DataSize() int64                         { return 0 }
func (t *Tree) Digest() uint64                          { return 0 }
func (t *Tree) FullDigest() uint64                      { return 0 }
func (t *Tree) Check() error                            { return nil }
func (t *Tree) Dump(w io.Writer) error                  { return nil }
func (t *Tree) Reapable(now int64, maxNeverUsed time.Duration, limit int) []Reap {
	return nil
}

func Allowed(acl []proto.ACL, perms proto.Perms, ids []proto.ID) bool { return false }
func NormalizeACL(acl []proto.ACL, ids []proto.ID, p Policy) ([]proto.ACL, proto.Code) {
	return nil, 0
}
func RedactACL(acl []proto.ACL) []proto.ACL { return nil }

package tree

import (
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// creation is a create, create2, createContainer or createTTL.
type creation struct {
	op    proto.Op
	path  string
	data  []byte
	acl   []proto.ACL
	flags int32
	ttl   int64 // −1 unless createTTL
}

// creationOf unpacks a request. It returns false if the request isn't one of op, or if
// op creates nothing.
func creationOf(op proto.Op, req proto.Record) (creation, bool) {
	if op.Perms() != proto.PermCreate { // which every create needs, and nothing else
		return creation{}, false
	}
	switch q := req.(type) {
	case *proto.CreateRequest:
		return creation{op, q.Path, q.Data, q.ACL, q.Flags, -1}, op != proto.OpCreateTTL
	case *proto.CreateTTLRequest:
		return creation{op, q.Path, q.Data, q.ACL, q.Flags, q.TTL}, op == proto.OpCreateTTL
	}
	return creation{}, false
}

// owner returns the owner to store for the new znode. The operation decides the kind of
// the znode; the mode decides how the request is validated. E.g. opcode 19 makes a
// container whatever the flags, and flag 4 with opcode 1 makes a persistent znode.
func (c *creation) owner(tx *Txn) (int64, proto.Code) {
	mode := proto.CreateMode(c.flags)
	switch {
	case !mode.Valid():
		return 0, proto.ErrBadArguments
	case mode.TTL() && tx.Policy&ExtendedTypes == 0:
		return 0, proto.ErrUnimplemented
	case mode.TTL() && (c.ttl <= 0 || c.ttl > proto.MaxTTL):
		return 0, proto.ErrBadArguments
	case !mode.TTL() && (c.ttl >= 0 || c.op == proto.OpCreateTTL):
		// ZooKeeper crashes on a createTTL that has neither a time to live nor a TTL
		// mode. We refuse it.
		return 0, proto.ErrBadArguments
	case c.op == proto.OpCreateContainer:
		return containerOwner, proto.Ok
	case c.op == proto.OpCreateTTL:
		return ttlOwner | c.ttl, proto.Ok
	case mode.Ephemeral():
		return tx.Session, proto.Ok
	}
	return 0, proto.Ok
}

// create executes c in ZooKeeper's order of checks.
func (t *exec) create(c *creation, r *Result) proto.Code {
	owner, code := c.owner(t.tx)
	if code != proto.Ok {
		return code
	}
	parent, acl, code := t.birthplace(c)
	if code != proto.Ok {
		return code
	}
	path, cversion := c.path, t.cversion(parent)
	if proto.CreateMode(c.flags).Sequential() {
		t.name = appendSequence(append(t.name[:0], path...), cversion)
		path = arena.View(t.name)
	}
	switch {
	case proto.ValidatePath(path) != nil:
		return proto.ErrBadArguments
	case t.get(path) != nil:
		return proto.ErrNodeExists
	case parent.Kind() == arena.Ephemeral:
		return proto.ErrNoChildrenForEphemerals
	}
	if code := t.checkQuota(path, int64(len(c.data)), 1); code != proto.Ok {
		return code
	}
	n := t.arena.NewNode(&arena.State{
		Text: arena.NewText(kindOf(owner), owner, path, c.data), ACL: t.acls.Intern(acl),
		Czxid: t.tx.Zxid, Mzxid: t.tx.Zxid, Pzxid: t.tx.Zxid, Ctime: t.tx.Time, Mtime: t.tx.Time,
	}, t.epoch)
	t.quotaChanges(n.Path())
	t.bear(parent, n, cversion)
	r.Path = n.Path()
	if t.tx.Record != nil {
		t.recordCreate(c, n, cversion+1)
	}
	stat(n, &r.Stat) // before a stats node's data is replaced, as in ZooKeeper
	t.quotaCreated(n)
	t.fire(proto.EventNodeCreated, n)
	t.fire(proto.EventNodeChildrenChanged, parent)
	return proto.Ok
}

// birthplace makes the checks that don't need the final name. It returns the
// parent and the list to store.
func (t *exec) birthplace(c *creation) (*node, []proto.ACL, proto.Code) {
	if c.path == proto.NullString {
		return nil, nil, proto.ErrMarshalling
	}
	slash := strings.LastIndexByte(c.path, '/')
	if slash < 0 || strings.IndexByte(c.path, 0) >= 0 {
		return nil, nil, proto.ErrBadArguments
	}
	acl, code := normalizeACL(t.aclBuf[:0], c.acl, t.tx.IDs, t.tx.Policy)
	if code != proto.Ok {
		return nil, nil, code
	}
	t.aclBuf = acl
	parent := t.get(c.path[:slash])
	switch {
	case parent == nil:
		return nil, nil, proto.ErrNoNode
	case !t.tx.allowed(parent, c.op.Perms()):
		return nil, nil, proto.ErrNoAuth
	}
	return parent, acl, proto.Ok
}

// cversion returns the sequence number of n's next child.
func (t *editor) cversion(n *node) int32 {
	if v, ok := t.undo.cversions[n]; ok {
		return v
	}
	return n.State().Cversion
}

// bear attaches n to its parent. cversion is n's sequence number.
//
// ZooKeeper never lowers a stored number: after it wraps, the number and the
// parent's pzxid never change again. Only within one multi does it keep counting.
func (t *exec) bear(parent, n *node, cversion int32) {
	if cversion++; cversion > parent.State().Cversion {
		t.edit(parent)
		parent.State().Cversion, parent.State().Pzxid = cversion, t.tx.Zxid
		t.commit(parent)
	} else {
		t.undo.wrapped(parent, cversion)
	}
	t.attach(parent, n)
	t.undo.created(n)
}

// appendSequence appends the number of a sequential znode: ten characters with
// leading zeros, including a minus sign.
func appendSequence(b []byte, v int32) []byte {
	var digits [12]byte
	s := strconv.AppendInt(digits[:0], int64(v), 10)
	width := 10
	if v < 0 {
		b, s, width = append(b, '-'), s[1:], 9
	}
	for i := len(s); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, s...)
}

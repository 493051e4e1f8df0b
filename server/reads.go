package server

import (
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// request is a request that is being answered from the tree.
type request struct {
	c      *conn
	op     proto.Op
	xid    int32
	refuse proto.Code
	body   []byte
	ids    []proto.ID
	reads  *stats.Tally // where reads are counted; nil: nowhere

	// Set by prepare. Otherwise the reply does the same work, and holds the tree's lock
	// during all of it.
	census     *tree.Census
	ephemerals *tree.EphemeralList

	// Set by answer.
	hangUp bool  // the connection closes after this reply
	zxid   int64 // the zxid in the reply
}

// answer appends the reply to q, and before it the events that must precede it. The
// tree is locked, for reading or writing.
func (q *request) answer(out []byte) []byte {
	if q.op == proto.OpSetWatches || q.op == proto.OpSetWatches2 {
		return q.answerSetWatches(out)
	}
	out, mark := proto.BeginFrame(out)
	h := proto.ReplyHeader{Xid: q.xid, Zxid: q.c.s.tree.LastZxid(), Err: q.refuse}
	out = h.Append(out)
	head := len(out)
	if h.Err == proto.Ok {
		h.Err, out = q.appendBody(out)
	}
	if h.Err != proto.Ok {
		out = out[:head]
	}
	if q.op == proto.OpPing {
		h.Xid = proto.XidPing
	}
	if h.Err == proto.ErrUnimplemented && q.refuse == proto.Ok {
		h.Zxid = -1
		q.hangUp = true
	}
	q.zxid = h.Zxid
	h.Append(out[:mark+proto.LengthSize])
	return proto.EndFrame(out, mark)
}

// appendBody appends the body of the reply to q.
func (q *request) appendBody(out []byte) (proto.Code, []byte) {
	switch q.op {
	case proto.OpPing:
		return proto.Ok, out
	case proto.OpGetData:
		return q.getData(out)
	case proto.OpExists:
		return q.exists(out)
	case proto.OpGetChildren, proto.OpGetChildren2:
		return q.getChildren(out)
	case proto.OpGetACL:
		return q.getACL(out)
	case proto.OpGetEphemerals:
		return q.getEphemerals(out)
	case proto.OpGetAllChildrenNumber:
		return q.getAllChildrenNumber(out)
	case proto.OpMultiRead:
		return q.multiRead(out)
	case proto.OpAddWatch:
		return q.addWatch(out)
	case proto.OpCheckWatches:
		return q.checkWatches(), out
	case proto.OpRemoveWatches:
		return q.removeWatches(), out
	case proto.OpWhoAmI:
		return proto.Ok, whoAmI(q, out)
	case proto.OpCloseSession:
		// The session is local to this server; other sessions' requests are proposed.
		q.hangUp = true
		return proto.Ok, out
	}
	return proto.ErrUnimplemented, out
}

// allowed reports whether one of q's identities has one of perms on n.
func (q *request) allowed(n *tree.Node, perms proto.Perms) bool {
	return q.c.s.cfg.Auth.SkipACL || n.Allows(perms, q.ids)
}

// find returns the node at path if q's client may read it with op.
func (q *request) find(op proto.Op, path string) (*tree.Node, proto.Code) {
	n := q.c.s.tree.Get(path)
	if n == nil {
		return nil, proto.ErrNoNode
	}
	if !q.allowed(n, op.Perms()) {
		return nil, proto.ErrNoAuth
	}
	return n, proto.Ok
}

// bad reports whether a request that was read from r can't be answered: it didn't
// decode, or its path is null.
func bad(r *proto.Reader, path string) bool { return r.Err() != nil || path == proto.NullString }

// readNode does what all reads with a watch begin with: it decodes the request, finds the
// znode, and sets the watch. exists sets it even if there is no znode: the client waits
// for its creation.
func (q *request) readNode(kind watch.Kind) (path string, n *tree.Node, code proto.Code) {
	var req proto.WatchRecord
	r := proto.AliasReader(q.body)
	if req.Decode(&r); bad(&r, req.Path) {
		return "", nil, proto.ErrMarshalling
	}
	if q.op == proto.OpExists && strings.IndexByte(req.Path, 0) >= 0 {
		return "", nil, proto.ErrBadArguments
	}
	n, code = q.find(q.op, req.Path)
	if req.Watch && (code == proto.Ok || code == proto.ErrNoNode && q.op == proto.OpExists) {
		if refused := q.c.setWatch(req.Path, kind); refused != proto.Ok {
			return "", nil, refused
		}
	}
	return req.Path, n, code
}

func (q *request) getData(out []byte) (proto.Code, []byte) {
	path, n, code := q.readNode(watch.Data)
	if code != proto.Ok {
		return code, out
	}
	q.countRead(path, len(n.Data()))
	return proto.Ok, appendData(out, n)
}

// appendData appends the reply to getData.
func appendData(out []byte, n *tree.Node) []byte {
	reply := proto.GetDataResponse{Data: n.Data()}
	n.Stat(&reply.Stat)
	return reply.Append(out)
}

func (q *request) exists(out []byte) (proto.Code, []byte) {
	path, n, code := q.readNode(watch.Data)
	if code != proto.Ok {
		return code, out
	}
	q.countRead(path, 0)
	var reply proto.ExistsResponse
	n.Stat(&reply.Stat)
	return proto.Ok, reply.Append(out)
}

// getChildren also answers getChildren2. It appends the fields of these replies one by
// one, because the tree has no list of the names.
func (q *request) getChildren(out []byte) (proto.Code, []byte) {
	path, n, code := q.readNode(watch.Child)
	if code != proto.Ok {
		return code, out
	}
	before := len(out)
	out = q.c.s.tree.AppendChildren(out, n)
	q.countRead(path, len(out)-before)
	if q.op == proto.OpGetChildren2 {
		var st proto.Stat
		n.Stat(&st)
		out = st.Append(out)
	}
	return proto.Ok, out
}

// getACL hides the hashes of digests from clients without the admin permission.
func (q *request) getACL(out []byte) (proto.Code, []byte) {
	var req proto.GetACLRequest
	r := proto.AliasReader(q.body)
	if req.Decode(&r); bad(&r, req.Path) {
		return proto.ErrMarshalling, out
	}
	n, code := q.find(q.op, req.Path)
	if code != proto.Ok {
		return code, out
	}
	reply := proto.GetACLResponse{ACL: n.ACL()}
	n.Stat(&reply.Stat)
	if !q.allowed(n, proto.PermAdmin) {
		reply.ACL = tree.RedactACL(reply.ACL)
	}
	return proto.Ok, reply.Append(out)
}

// prepare does the slow part of a getEphemerals or getAllChildrenNumber that is answered
// next. The caller holds the tree's lock for reading and has no replies that events could
// overtake: if there are many nodes, prepare releases the lock now and then.
func (q *request) prepare() {
	s := q.c.s
	yield := func() {
		s.tree.RUnlock()
		s.tree.RLock()
	}
	if q.op == proto.OpGetEphemerals {
		if prefix, ok := ephemeralPrefix(q.body); ok {
			q.ephemerals = s.tree.ListEphemerals(q.c.session.id, prefix)
			for q.ephemerals.Step() {
				yield()
			}
		}
		return
	}
	var req proto.GetAllChildrenNumberRequest
	r := proto.AliasReader(q.body)
	if req.Decode(&r); bad(&r, req.Path) {
		return
	}
	if n, code := q.find(q.op, req.Path); code == proto.Ok {
		q.census = s.tree.Census(n)
		for q.census.Step() {
			yield()
		}
	}
}

// ephemeralPrefix returns the prefix in a getEphemerals. It is a prefix of the text, not of
// path elements. ok is false if the request doesn't decode.
func ephemeralPrefix(body []byte) (prefix string, ok bool) {
	var req proto.GetEphemeralsRequest
	r := proto.AliasReader(body)
	if req.Decode(&r); r.Err() != nil {
		return "", false
	}
	trimmed := strings.TrimFunc(req.Prefix, func(r rune) bool { return r <= ' ' }) // as in Java
	if req.Prefix == proto.NullString || trimmed == "/" || trimmed == "" {
		return "", true
	}
	return req.Prefix, true
}

// getEphemerals lists the session's ephemeral znodes.
func (q *request) getEphemerals(out []byte) (proto.Code, []byte) {
	prefix, ok := ephemeralPrefix(q.body)
	if !ok {
		return proto.ErrMarshalling, out
	}
	list := q.ephemerals
	if list == nil {
		list = q.c.s.tree.ListEphemerals(q.c.session.id, prefix)
	}
	reply := proto.GetEphemeralsResponse{Ephemerals: list.Paths()}
	return proto.Ok, reply.Append(out)
}

func (q *request) getAllChildrenNumber(out []byte) (proto.Code, []byte) {
	var req proto.GetAllChildrenNumberRequest
	r := proto.AliasReader(q.body)
	if req.Decode(&r); bad(&r, req.Path) {
		return proto.ErrMarshalling, out
	}
	n, code := q.find(q.op, req.Path)
	if code != proto.Ok {
		return code, out
	}
	var reply proto.GetAllChildrenNumberResponse
	if q.census != nil {
		reply.Total = int32(q.census.Count())
	} else {
		reply.Total = int32(q.c.s.tree.CountDescendants(n)) // it has become readable since prepare
	}
	if req.Path == "" {
		reply.Total++ // ZooKeeper counts the root, under its other name, among its descendants
	}
	return proto.Ok, reply.Append(out)
}

// multiRead answers each of its reads with a separate code. It sets no watches. A short
// request can ask for any amount of data, so we refuse a reply above the bound of a client's
// output before we allocate memory for it.
func (q *request) multiRead(out []byte) (proto.Code, []byte) {
	s := q.c.s
	var req proto.MultiRequest
	r := proto.AliasReader(q.body)
	if req.Decode(&r); r.Err() != nil || len(req.Ops) > 0 && req.Ops[0].Op.Kind() != proto.Read {
		return proto.ErrMarshalling, out
	}
	size := 0
	for i := range req.Ops {
		op := &req.Ops[i]
		path, _ := op.Path()
		if path == proto.NullString {
			return proto.ErrMarshalling, out
		}
		if size += q.leastReply(op.Op, path); size > s.cfg.Limits.MaxOutput {
			return proto.ErrMarshalling, out
		}
	}
	start := len(out)
	out = slices.Grow(out, size)
	for i := range req.Ops {
		op := &req.Ops[i]
		path, _ := op.Path()
		if out = q.readOne(op.Op, path, out); len(out)-start > s.cfg.Limits.MaxOutput {
			return proto.ErrMarshalling, out[:start]
		}
	}
	return proto.Ok, proto.AppendMultiEnd(out)
}

// leastReply returns how many bytes one read of a multiRead adds to the reply, without
// the names of children.
func (q *request) leastReply(op proto.Op, path string) int {
	const header, length = 9, 4
	n, code := q.find(op, path)
	switch {
	case code != proto.Ok:
		return header + length
	case op == proto.OpGetData:
		return header + length + len(n.Data()) + proto.StatSize
	}
	return header + length + length*n.NumChildren()
}

// readOne answers one read of a multiRead.
func (q *request) readOne(op proto.Op, path string, out []byte) []byte {
	n, code := q.find(op, path)
	if code != proto.Ok {
		return proto.AppendMultiError(out, code)
	}
	h := proto.MultiHeader{Op: op}
	out = h.Append(out)
	if op == proto.OpGetData {
		return appendData(out, n)
	}
	return q.c.s.tree.AppendChildren(out, n)
}

// countRead counts a read of path that returned this number of bytes.
func (q *request) countRead(path string, bytes int) {
	if q.reads != nil {
		q.reads.Add(&q.c.s.spaces, path, len(path)+bytes)
	}
}

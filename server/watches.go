package server

import (
	"slices"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// setWatch sets a watch of c; the tree is locked. It returns ErrQuotaExceeded if the
// client's watches would need too much memory.
func (c *conn) setWatch(path string, k watch.Kind) proto.Code {
	s := c.s
	w := c.session.watcher.Load()
	if w == nil {
		w = s.watches.NewWatcher(c)
		c.session.watcher.Store(w)
	}
	if !s.watches.Add(w, path, k) {
		s.stats.WatchesRefused.Add(1)
		c.complain("rejecting a watch: the client's watches use too much memory", "bytes", w.Held(), "bound", s.cfg.Limits.MaxWatchBytes)
		return proto.ErrQuotaExceeded
	}
	if s.memory != nil {
		s.memory.Wrote(len(path))
	}
	if s.watches.Held() > s.cfg.Limits.MaxWatchBytesTotal {
		s.askRelief()
	}
	return proto.Ok
}

// Notify queues an event for the client. The watch table calls it on the goroutine that
// applies the log.
func (c *conn) Notify(typ proto.EventType, path string, zxid int64) {
	f := &c.s.fsm
	frame := f.event.make(typ, path, zxid)
	c.replies.mu.Lock()
	c.replies.queueShared(frame)
	c.replies.counters.Sent++
	c.replies.mu.Unlock()
	f.sent++
	f.eventBytes += int64(len(frame.B) - proto.LengthSize)
	f.touch(c)
}

// notification is the frame of the newest event; all watchers get the same frame.
type notification struct {
	typ   proto.EventType
	path  string
	zxid  int64
	frame *buffer.Buffer
}

// make returns the frame of an event.
func (n *notification) make(typ proto.EventType, path string, zxid int64) *buffer.Buffer {
	if n.frame == nil || n.zxid != zxid || n.typ != typ || n.path != path {
		b := make([]byte, 0, eventSize+len(path))
		*n = notification{typ, path, zxid, &buffer.Buffer{B: appendEvent(b, typ, path, zxid), Shared: true}}
	}
	return n.frame
}

// eventSize is the size of a notification without its path: its length, the path's
// length, type and state.
const eventSize = proto.LengthSize + proto.ReplyHeaderSize + 4 + 4 + 4

// appendEvent appends a notification.
func appendEvent(out []byte, typ proto.EventType, path string, zxid int64) []byte {
	out, mark := proto.BeginFrame(out)
	h := proto.ReplyHeader{Xid: proto.XidNotification, Zxid: zxid}
	e := proto.WatcherEvent{Type: int32(typ), State: proto.StateSyncConnected, Path: path}
	return proto.EndFrame(e.Append(h.Append(out)), mark)
}

// fire delivers the events of a transaction to the watchers that may read the znodes
// concerned.
func (f *fsm) fire(events []tree.Event) {
	s := f.s
	for i := range events {
		e := &events[i]
		allow := f.allow
		if s.cfg.Auth.SkipACL || openToRead(e.ACL) {
			allow = nil
		}
		f.fired = e
		s.stats.CountWatchers(e.Type, s.watches.Fire(e.Type, e.Path, e.Zxid, allow))
	}
}

// openToRead reports whether all clients may read under acl, the usual case.
func openToRead(acl []proto.ACL) bool {
	return len(acl) == 0 || acl[0].Perms&proto.PermRead != 0 && acl[0].ID == proto.ID{Scheme: "world", ID: "anyone"}
}

func (q *request) addWatch(out []byte) (proto.Code, []byte) {
	var req proto.AddWatchRequest
	r := proto.AliasReader(q.body)
	if req.Decode(&r); r.Err() != nil {
		return proto.ErrMarshalling, out
	}
	kind := watch.Persistent
	switch proto.AddWatchMode(req.Mode) {
	case proto.AddWatchPersistent:
	case proto.AddWatchPersistentRecursive:
		kind = watch.Recursive
	default:
		return proto.ErrMarshalling, out
	}
	var reply proto.ErrorResponse
	return q.c.setWatch(req.Path, kind), reply.Append(out)
}

// decodeCheck reads the body of checkWatches and removeWatches.
func decodeCheck(q *request) (path string, typ proto.WatcherType, code proto.Code) {
	var req proto.CheckWatchesRequest
	r := proto.AliasReader(q.body)
	req.Decode(&r)
	typ = proto.WatcherType(req.Type)
	if r.Err() != nil || typ < proto.WatcherChildren || typ > proto.WatcherPersistentRecursive {
		return "", 0, proto.ErrMarshalling
	}
	return req.Path, typ, proto.Ok
}

func (q *request) checkWatches() proto.Code {
	path, typ, code := decodeCheck(q)
	if w := q.c.session.watcher.Load(); code == proto.Ok && (w == nil || !q.c.s.watches.Has(w, path, typ)) {
		return proto.ErrNoWatcher
	}
	return code
}

func (q *request) removeWatches() proto.Code {
	path, typ, code := decodeCheck(q)
	if w := q.c.session.watcher.Load(); code == proto.Ok && (w == nil || !q.c.s.watches.Remove(w, path, typ)) {
		return proto.ErrNoWatcher
	}
	return code
}

// answerSetWatches sets the watches that a client had before it reconnected. For each event
// that the client missed, it sends the event before the reply instead. If the client's
// watches would need too much memory, the server closes the connection: a client ignores the
// code of this reply and would wait for events that never come.
func (q *request) answerSetWatches(out []byte) []byte {
	s := q.c.s
	var req proto.SetWatches2
	code := decodeSetWatches(q, &req)
	if code == proto.Ok {
		r := rewatching{s: s, q: q, out: out, zxid: req.RelativeZxid}
		r.catchUp(&req)
		if out = r.out; r.refused {
			q.c.kill()
			code = proto.ErrQuotaExceeded
		}
	}
	h := proto.ReplyHeader{Xid: q.xid, Zxid: s.tree.LastZxid(), Err: code}
	out, mark := proto.BeginFrame(out)
	return proto.EndFrame(h.Append(out), mark)
}

// decodeSetWatches decodes either request into req.
func decodeSetWatches(q *request, req *proto.SetWatches2) proto.Code {
	if q.refuse != proto.Ok {
		return q.refuse
	}
	r := proto.AliasReader(q.body)
	if q.op == proto.OpSetWatches2 {
		req.Decode(&r)
	} else {
		var old proto.SetWatches
		old.Decode(&r)
		*req = proto.SetWatches2{RelativeZxid: old.RelativeZxid, Data: old.Data, Exist: old.Exist, Child: old.Child,
			Persistent: []string{}, PersistentRecursive: []string{}}
	}
	if r.Err() != nil {
		return proto.ErrMarshalling
	}
	for _, paths := range [][]string{req.Data, req.Exist, req.Child} {
		if paths == nil || slices.Contains(paths, proto.NullString) {
			return proto.ErrMarshalling
		}
	}
	if req.Persistent == nil || req.PersistentRecursive == nil {
		return proto.ErrMarshalling
	}
	return proto.Ok
}

// rewatching is a setWatches request that is being answered.
type rewatching struct {
	s       *Server
	q       *request
	out     []byte
	zxid    int64 // the last zxid that the client has seen
	refused bool  // a watch would need too much memory
}

// event appends an event that the client missed.
func (r *rewatching) event(typ proto.EventType, path string) {
	before := len(r.out)
	r.out = appendEvent(r.out, typ, path, -1)
	r.s.stats.Sent.Add(1)
	r.s.stats.BytesEvents.Add(int64(len(r.out) - before - proto.LengthSize))
}

// watch sets a watch.
func (r *rewatching) watch(path string, k watch.Kind) {
	r.refused = r.refused || r.q.c.setWatch(path, k) != proto.Ok
}

// catchUp appends the events that one-shot watches would have delivered since r.zxid, and
// sets the other watches. It reveals nothing about a znode that the client must not read,
// because a watch on a live connection wouldn't have delivered such events either.
func (r *rewatching) catchUp(req *proto.SetWatches2) {
	var st proto.Stat
	for _, path := range req.Data {
		switch n, hidden := r.find(path); {
		case n == nil:
			r.event(proto.EventNodeDeleted, path)
		case !hidden && newer(n, &st, r.zxid, &st.Mzxid):
			r.event(proto.EventNodeDataChanged, path)
		default:
			r.watch(path, watch.Data)
		}
	}
	for _, path := range req.Exist {
		if n, hidden := r.find(path); n != nil && !hidden {
			r.event(proto.EventNodeCreated, path)
		} else {
			r.watch(path, watch.Data)
		}
	}
	for _, path := range req.Child {
		switch n, hidden := r.find(path); {
		case n == nil:
			r.event(proto.EventNodeDeleted, path)
		case !hidden && newer(n, &st, r.zxid, &st.Pzxid):
			r.event(proto.EventNodeChildrenChanged, path)
		default:
			r.watch(path, watch.Child)
		}
	}
	for _, path := range req.Persistent {
		r.watch(path, watch.Persistent)
	}
	for _, path := range req.PersistentRecursive {
		r.watch(path, watch.Recursive)
	}
}

// find returns the znode at path, or nil, and reports whether the client must not read it.
func (r *rewatching) find(path string) (n *tree.Node, hidden bool) {
	n = r.s.tree.Get(path)
	return n, n != nil && !r.q.allowed(n, proto.PermRead)
}

// newer fills st with n's stat and reports whether *field, a field of st, is above
// zxid.
func newer(n *tree.Node, st *proto.Stat, zxid int64, field *int64) bool {
	n.Stat(st)
	return *field > zxid
}

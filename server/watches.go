package server

import (
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// watch sets a watch of c; the tree is locked.
func (s *Server) watch(c *conn, path string, k watch.Kind) {
	if c.watcher == nil {
		c.watcher = s.watches.NewWatcher(c)
	}
	s.watches.Add(c.watcher, path, k)
}

// Notify queues an event for the client. The watch table calls it, on the
// goroutine that applies the log.
func (c *conn) Notify(typ proto.EventType, path string, zxid int64) {
	f := &c.s.fsm
	frame := f.event.make(typ, path, zxid)
	c.mu.Lock()
	c.queueShared(frame)
	c.counters.sent++
	c.mu.Unlock()
	f.sent++
	f.eventBytes += int64(len(frame.b) - proto.LengthSize)
	f.touch(c)
}

// notification is the frame of the newest event, which all who watch get alike.
type notification struct {
	typ   proto.EventType
	path  string
	zxid  int64
	frame *buffer
}

// make returns the frame of an event.
func (n *notification) make(typ proto.EventType, path string, zxid int64) *buffer {
	if n.frame == nil || n.zxid != zxid || n.typ != typ || n.path != path {
		b := make([]byte, 0, eventSize+len(path))
		*n = notification{typ, path, zxid, &buffer{b: appendEvent(b, typ, path, zxid), shared: true}}
	}
	return n.frame
}

// eventSize is how many bytes a notification has besides its path: lengths of
// itself and of the path, type and state.
const eventSize = proto.LengthSize + proto.ReplyHeaderSize + 4 + 4 + 4

// appendEvent appends a notification.
func appendEvent(out []byte, typ proto.EventType, path string, zxid int64) []byte {
	out, mark := proto.BeginFrame(out)
	h := proto.ReplyHeader{Xid: proto.XidNotification, Zxid: zxid}
	e := proto.WatcherEvent{Type: int32(typ), State: proto.StateSyncConnected, Path: path}
	return proto.EndFrame(e.Append(h.Append(out)), mark)
}

// fire delivers the events of a transaction to those who may read what they
// tell of.
func (s *Server) fire(events []tree.Event) {
	f := &s.fsm
	for i := range events {
		e := &events[i]
		allow := f.allow
		if s.cfg.SkipACL || openToRead(e.ACL) {
			allow = nil
		}
		f.acl = e.ACL
		s.stats.fired(e.Type, s.watches.Fire(e.Type, e.Path, e.Zxid, allow))
	}
}

// openToRead reports whether everybody may read under acl, the usual case.
func openToRead(acl []proto.ACL) bool {
	return len(acl) == 0 || acl[0].Perms&proto.PermRead != 0 && acl[0].ID == proto.ID{Scheme: "world", ID: "anyone"}
}

func (s *Server) addWatch(q *request, out []byte) (proto.Code, []byte) {
	var req proto.AddWatchRequest
	r := proto.AliasReader(q.body)
	if req.Decode(&r); r.Err() != nil {
		return proto.ErrMarshalling, out
	}
	switch proto.AddWatchMode(req.Mode) {
	case proto.AddWatchPersistent:
		s.watch(q.c, req.Path, watch.Persistent)
	case proto.AddWatchPersistentRecursive:
		s.watch(q.c, req.Path, watch.Recursive)
	default:
		return proto.ErrMarshalling, out
	}
	return proto.Ok, proto.AppendInt(out, 0)
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

func (s *Server) checkWatches(q *request) proto.Code {
	path, typ, code := decodeCheck(q)
	if code == proto.Ok && (q.c.watcher == nil || !s.watches.Has(q.c.watcher, path, typ)) {
		return proto.ErrNoWatcher
	}
	return code
}

func (s *Server) removeWatches(q *request) proto.Code {
	path, typ, code := decodeCheck(q)
	if code == proto.Ok && (q.c.watcher == nil || !s.watches.Remove(q.c.watcher, path, typ)) {
		return proto.ErrNoWatcher
	}
	return code
}

// answerSetWatches sets what a client watched before it reconnected, or tells
// it, before the reply, what happened since it last heard.
func (s *Server) answerSetWatches(q *request, out []byte) []byte {
	var req proto.SetWatches2
	code := decodeSetWatches(q, &req)
	if code == proto.Ok {
		out = s.catchUp(q.c, &req, out)
		for _, path := range req.Persistent {
			s.watch(q.c, path, watch.Persistent)
		}
		for _, path := range req.PersistentRecursive {
			s.watch(q.c, path, watch.Recursive)
		}
	}
	h := proto.ReplyHeader{Xid: q.xid, Zxid: s.tree.LastZxid(), Err: code}
	out, mark := proto.BeginFrame(out)
	return proto.EndFrame(h.Append(out), mark)
}

// decodeSetWatches reads either form into req.
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

// catchUp appends the events that one-shot watches would have had since
// req.RelativeZxid, and sets the others.
func (s *Server) catchUp(c *conn, req *proto.SetWatches2, out []byte) []byte {
	event := func(typ proto.EventType, path string) {
		before := len(out)
		out = appendEvent(out, typ, path, -1)
		s.stats.sent.Add(1)
		s.stats.bytesEvents.Add(int64(len(out) - before - proto.LengthSize))
	}
	var st proto.Stat
	for _, path := range req.Data {
		switch n := s.tree.Get(path); {
		case n == nil:
			event(proto.EventNodeDeleted, path)
		case newer(n, &st, req.RelativeZxid, &st.Mzxid):
			event(proto.EventNodeDataChanged, path)
		default:
			s.watch(c, path, watch.Data)
		}
	}
	for _, path := range req.Exist {
		if s.tree.Get(path) != nil {
			event(proto.EventNodeCreated, path)
		} else {
			s.watch(c, path, watch.Data)
		}
	}
	for _, path := range req.Child {
		switch n := s.tree.Get(path); {
		case n == nil:
			event(proto.EventNodeDeleted, path)
		case newer(n, &st, req.RelativeZxid, &st.Pzxid):
			event(proto.EventNodeChildrenChanged, path)
		default:
			s.watch(c, path, watch.Child)
		}
	}
	return out
}

// newer fills st with n's stat and reports whether *field of it is above zxid.
func newer(n *tree.Node, st *proto.Stat, zxid int64, field *int64) bool {
	n.Stat(st)
	return *field > zxid
}

package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/proto"
)

// call is one request and its reply. We pool calls. The caller owns a call from newCall to
// free, except between submit and the signal on ready, when the link's reader may write the
// reply into it. A caller that stops waiting for the signal abandons the call, and the
// reader frees it.
type call struct {
	op     proto.Op
	prefix string // chroot and namespace, prepended to path
	path   string
	data   []byte
	acl    []proto.ACL
	num    int32 // version, flags, mode or type
	ttl    int64
	watch  bool
	rec    proto.Record // the whole body, for infrequent operations
	sync   bool         // send a sync before it, in the same write
	guards *call        // set on such a sync: the read that fails if the sync does
	sess   int64        // the session it must run in; 0: any

	// guarded by core.mu while the call is with a link
	seq       uint64
	xid       int32
	taken     bool // the reader owns it and is about to signal ready
	abandoned bool

	ready chan struct{} // capacity 1

	// the reply
	err     error      // *brokenError if the link broke
	refused proto.Code // the error code of the sync before it
	zxid    int64
	code    proto.Code
	answer         // empty unless code is Ok
	watcher *Watch // armed when the reply arrives
}

// brokenError is the reason why a call got no reply.
type brokenError struct {
	code  Code  // ErrConnectionLoss, ErrSessionExpired or 0
	cause error // may be nil
	sent  bool  // the request may have reached the server
}

func (b *brokenError) Error() string {
	if b.cause == nil {
		return b.code.Error()
	}
	return b.cause.Error()
}

// newCall returns a call for an operation of view c on path.
func (c *Client) newCall(op proto.Op, path string) *call {
	k := c.core.calls.Get().(*call)
	k.op, k.prefix, k.path, k.sess = op, c.prefix, path, c.session
	return k
}

func newCallPool() sync.Pool {
	return sync.Pool{New: func() any { return &call{ready: make(chan struct{}, 1)} }}
}

// free returns a call to the pool.
func (c *core) free(k *call) {
	*k = call{ready: k.ready}
	c.calls.Put(k)
}

// joinPath puts a prefix without a trailing slash before a path.
func joinPath(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "/":
		return prefix
	}
	return prefix + path
}

// appendFrame appends the request as a frame.
func (k *call) appendFrame(b []byte) []byte {
	b, mark := proto.BeginFrame(b)
	h := proto.RequestHeader{Xid: k.xid, Op: k.op}
	b = h.Append(b)
	body := len(b)
	b = k.appendBody(b)
	if k.prefix != "" && k.op.HasPath() {
		b = proto.PrefixPath(b, body, k.prefix)
	}
	return proto.EndFrame(b, mark)
}

// appendBody appends the request's record. For the frequent operations we build the record
// here, so that it doesn't escape to the heap.
func (k *call) appendBody(b []byte) []byte {
	switch k.op {
	case proto.OpGetData, proto.OpExists, proto.OpGetChildren2:
		return (&proto.WatchRecord{Path: k.path, Watch: k.watch}).Append(b)
	case proto.OpCreate2, proto.OpCreateContainer:
		return (&proto.CreateRequest{Path: k.path, Data: k.data, ACL: k.acl, Flags: k.num}).Append(b)
	case proto.OpCreateTTL:
		return (&proto.CreateTTLRequest{Path: k.path, Data: k.data, ACL: k.acl, Flags: k.num, TTL: k.ttl}).Append(b)
	case proto.OpSetData:
		return (&proto.SetDataRequest{Path: k.path, Data: k.data, Version: k.num}).Append(b)
	case proto.OpSetACL:
		return (&proto.SetACLRequest{Path: k.path, ACL: k.acl, Version: k.num}).Append(b)
	case proto.OpDelete:
		return (&proto.DeleteRequest{Path: k.path, Version: k.num}).Append(b)
	case proto.OpAddWatch:
		return (&proto.AddWatchRequest{Path: k.path, Mode: k.num}).Append(b)
	case proto.OpRemoveWatches, proto.OpCheckWatches:
		return (&proto.CheckWatchesRequest{Path: k.path, Type: k.num}).Append(b)
	case proto.OpGetEphemerals:
		return (&proto.GetEphemeralsRequest{Prefix: k.path}).Append(b)
	case proto.OpSync, proto.OpGetACL, proto.OpGetAllChildrenNumber:
		return (&proto.PathRecord{Path: k.path}).Append(b)
	}
	if k.rec != nil {
		b = k.rec.Append(b)
	}
	return b
}

// answer is the body of a reply, or of an entry in the reply to a multi.
type answer struct {
	stat    proto.Stat
	bytes   []byte
	text    string
	texts   []string
	acls    []proto.ACL
	results []multiResult
	clients []ID
	total   int32
}

// decode reads the body of the reply to op.
func (a *answer) decode(op proto.Op, r *proto.Reader) {
	switch op {
	case proto.OpGetData, proto.OpReconfig:
		var p proto.GetDataResponse
		p.Decode(r)
		a.bytes, a.stat = p.Data, p.Stat
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		var p proto.StatRecord
		p.Decode(r)
		a.stat = p.Stat
	case proto.OpGetChildren:
		var p proto.GetChildrenResponse
		p.Decode(r)
		a.texts = p.Children
	case proto.OpGetChildren2:
		var p proto.GetChildren2Response
		p.Decode(r)
		a.texts, a.stat = p.Children, p.Stat
	case proto.OpCreate:
		var p proto.CreateResponse
		p.Decode(r)
		a.text = p.Path
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		var p proto.Create2Response
		p.Decode(r)
		a.text, a.stat = p.Path, p.Stat
	case proto.OpGetACL:
		var p proto.GetACLResponse
		p.Decode(r)
		a.acls, a.stat = p.ACL, p.Stat
	case proto.OpGetEphemerals:
		var p proto.GetEphemeralsResponse
		p.Decode(r)
		a.texts = p.Ephemerals
	case proto.OpGetAllChildrenNumber:
		var p proto.GetAllChildrenNumberResponse
		p.Decode(r)
		a.total = p.Total
	case proto.OpMulti, proto.OpMultiRead:
		a.results = decodeMulti(r)
	case proto.OpWhoAmI:
		var p proto.WhoAmIResponse
		p.Decode(r)
		a.clients = p.IDs
	}
}

// failure returns the error of an answered or broken call, nil if it succeeded. If the
// server refused the call, it did not execute it.
func (k *call) failure() error {
	var b *brokenError
	switch {
	case k.err == nil && k.code == 0:
		return nil
	case k.err == nil:
		return &Error{Op: k.op.String(), Path: k.path, Code: k.code}
	}
	e := &Error{Op: k.op.String(), Path: k.path}
	if as, ok := k.err.(*brokenError); ok {
		b = as
		e.Code, e.Err, e.Unknown = b.code, b.cause, b.sent && k.op.Transaction()
	} else {
		e.Err = k.err
	}
	return e
}

// do makes one request and waits for its reply. We never send a request twice here. The
// caller still owns the call and frees it, unless abandoned is true.
func (c *core) do(ctx context.Context, k *call) (err error, abandoned bool) { //nolint:revive // callers check the error first
	c.mu.Lock()
	losses := c.session.losses
	c.mu.Unlock()
	for {
		if err := c.submit(ctx, k, losses); err != nil {
			return err, false
		}
		select {
		case <-k.ready:
		case <-ctx.Done():
			op, path := k.op, k.path // the reader owns an abandoned call
			if c.abandon(k) {
				return &Error{Op: op.String(), Path: path, Unknown: op.Transaction(), Err: context.Cause(ctx)}, true
			}
			<-k.ready // the reply came first
		}
		if b, ok := k.err.(*brokenError); ok && !b.sent && b.code == ErrConnectionLoss {
			k.err = nil
			continue // never sent: use the next connection
		}
		return k.failure(), false
	}
}

// abandon leaves a call to the reader. It reports false if the reply has arrived. We count
// a request in the output buffer as sent, because the writer will send it.
func (c *core) abandon(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.taken {
		return false
	}
	k.abandoned = true
	return true
}

// submit passes a call to the connection. Without a connection, it waits for one. It fails
// if a session was lost after the caller read losses, i.e. after the call began.
func (c *core) submit(ctx context.Context, k *call, losses uint64) error {
	fail := func(code Code, cause error) error {
		return &Error{Op: k.op.String(), Path: k.path, Code: code, Err: cause}
	}
	if err := ctx.Err(); err != nil {
		return fail(0, context.Cause(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.end.err != nil:
			return c.end.failure(k.op.String(), k.path)
		case losses != c.session.losses || k.sess != 0 && k.sess != c.session.ID:
			return fail(ErrSessionExpired, nil)
		case c.link != nil:
			return c.enqueue(k)
		}
		change := c.states.change
		c.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if c.link == nil && ctx.Err() != nil {
			return fail(0, fmt.Errorf("no connection (%w): %w", c.failures.why(), context.Cause(ctx)))
		}
	}
}

// enqueue appends a call to the link's output. The caller holds c.mu.
func (c *core) enqueue(k *call) error {
	l := c.link
	before := len(l.out.buf)
	var first *call
	if k.sync {
		first = c.calls.Get().(*call)
		first.op, first.prefix, first.path, first.abandoned, first.guards = proto.OpSync, k.prefix, k.path, true, k
		l.push(first)
	}
	start := len(l.out.buf)
	l.push(k)
	if n := len(l.out.buf) - start - proto.LengthSize; n > c.cfg.maxRequest {
		l.unpush(first, before)
		return &Error{Op: k.op.String(), Path: k.path, Code: ErrBadArguments,
			Err: fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrRequestTooLarge, n, c.cfg.maxRequest)}
	}
	if k.watcher != nil {
		c.watches.arming(k)
	}
	l.out.kick()
	return nil
}

package client

import (
	"context"
	"errors"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// request describes an operation. We pass it by value to avoid an allocation.
type request struct {
	op      proto.Op
	path    string
	data    []byte
	acl     []ACL
	num     int32
	ttl     int64
	rec     proto.Record
	linear  bool
	watch   bool // set a watch of this kind
	kind    kind
	safe    bool // safe to run twice
	noCheck bool // don't validate the path
}

// perform makes a request and repeats it according to the policy. It returns the answered
// call, which the caller frees, or nil with an error.
func (c *Client) perform(ctx context.Context, q request) (*call, error) {
	k, _, err := c.performAgain(ctx, q)
	return k, err
}

// performAgain is perform, and also reports whether the request is a write that was
// repeated after a try that may have been executed.
func (c *Client) performAgain(ctx context.Context, q request) (_ *call, repeated bool, _ error) {
	if !q.noCheck {
		if err := c.check(q.op, q.path); err != nil {
			return nil, false, err
		}
	}
	var r retrying
	var unknown error // of the last try that may have been executed
	for {
		k := c.newCall(q.op, q.path)
		k.data, k.acl, k.num, k.ttl, k.rec, k.sync = q.data, q.acl, q.num, q.ttl, q.rec, q.linear
		if q.watch {
			k.watch = q.kind < kindPersistent
			k.watcher = c.newWatch(q.path, q.kind)
		}
		err, abandoned := c.core.do(ctx, k)
		if err == nil || !abandoned && q.op == proto.OpExists && k.code == ErrNoNode {
			return k, unknown != nil, nil
		}
		if !abandoned {
			c.core.free(k)
		}
		if unknown != nil {
			err = stillUnknown(unknown, err)
		}
		if !repeatable(err, q.safe) {
			return nil, unknown != nil, err
		}
		if r.policy == nil {
			r = retrying{policy: c.retry, began: time.Now()}
		}
		if !r.again(ctx) {
			return nil, unknown != nil, err
		}
		if errors.Is(err, ErrUnknownOutcome) {
			unknown = err
		}
	}
}

// stillUnknown returns the error of a write after a later try has failed with err, which
// leaves the outcome of the write unknown. The server doesn't execute a throttled request,
// so we learn nothing about the earlier try. Other codes explain why we didn't repeat the
// write.
func stillUnknown(unknown, err error) error {
	var e *Error
	if errors.Is(err, ErrThrottledOp) || !errors.As(err, &e) {
		return unknown
	}
	e.Unknown = true
	return err
}

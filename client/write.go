package client

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/proto"
)

// WriteOption changes how Set or Delete is done: [Idempotent], [Guaranteed] or
// [Compressed].
type WriteOption interface{ writeOption() }

// WriteFlag is a [WriteOption] that is on or off.
type WriteFlag uint8

const (
	// Idempotent allows to repeat a write that may have been done already. It is
	// for writes of which one or two make no difference to anybody: a Set to any
	// version overwrites what another client may have written between. A repeated
	// Delete takes a znode that is not there for its own success; a repeated write
	// to a version may fail with [ErrBadVersion] though it was done.
	Idempotent WriteFlag = 1 << iota

	// Guaranteed goes on with a Delete in the background if its outcome is
	// unknown, or ctx ended before, until the znode is not there, the session is
	// lost, or the Client is closed. The error says nevertheless what happened in
	// the foreground. A version is kept to.
	Guaranteed
)

func (WriteFlag) writeOption() {}

// DataFlag is an option of whatever reads or writes data.
type DataFlag uint8

// Compressed compresses data before they are written, and decompresses what is
// read: see [WithCompression]. Data that were not compressed fail to be read so.
const Compressed DataFlag = 1

func (DataFlag) writeOption()  {}
func (DataFlag) readOption()   {}
func (DataFlag) createOption() {}

// writeOptions is what options of a write say.
type writeOptions struct {
	idempotent, guaranteed, compressed bool
}

func writeOpts(opts []WriteOption) (o writeOptions) {
	for _, opt := range opts {
		switch f := opt.(type) {
		case WriteFlag:
			o.idempotent = o.idempotent || f&Idempotent != 0
			o.guaranteed = o.guaranteed || f&Guaranteed != 0
		case DataFlag:
			o.compressed = true
		}
	}
	return o
}

// Set replaces the data of the znode at path if its version is version, or
// whatever it is with [AnyVersion], and returns its metadata. nil are null data.
//
// If the connection is lost, the session expires or ctx ends after the request
// was sent, the error matches [ErrUnknownOutcome]. [ErrBadVersion] says that
// somebody else was first.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32, opts ...WriteOption) (Stat, error) {
	o := writeOpts(opts)
	if o.compressed {
		var err error
		if data, err = c.core.cfg.compression.Compress(data); err != nil {
			return Stat{}, &Error{Op: proto.OpSetData.String(), Path: path, Err: err}
		}
	}
	k, err := c.perform(ctx, request{op: proto.OpSetData, path: path, data: data, num: version, safe: o.idempotent})
	if err != nil {
		return Stat{}, err
	}
	defer c.core.free(k)
	return k.stat, nil
}

// SetACL replaces the ACL of the znode at path if its aversion is version, or
// whatever it is with [AnyVersion].
//
// Of its errors the same is true as of Set's.
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32, opts ...WriteOption) (Stat, error) {
	k, err := c.perform(ctx, request{op: proto.OpSetACL, path: path, acl: acl, num: version, safe: writeOpts(opts).idempotent})
	if err != nil {
		return Stat{}, err
	}
	defer c.core.free(k)
	return k.stat, nil
}

// Delete deletes the znode at path if its version is version, or whatever it is
// with [AnyVersion]. It must have no children ([ErrNotEmpty]); see DeleteAll.
//
// Of its errors the same is true as of Set's. With [Guaranteed] it is done in the
// end.
func (c *Client) Delete(ctx context.Context, path string, version int32, opts ...WriteOption) error {
	o := writeOpts(opts)
	k, repeated, err := c.performAgain(ctx, request{op: proto.OpDelete, path: path, num: version, safe: o.idempotent})
	err = c.finish(k, err)
	if repeated && errors.Is(err, ErrNoNode) {
		return nil // it may have been ours
	}
	if o.guaranteed && undone(err) {
		c.deleteInBackground(path, version)
	}
	return err
}

// undone reports whether a write failed for a reason that passes.
func undone(err error) bool {
	return errors.Is(err, ErrUnknownOutcome) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrThrottledOp)
}

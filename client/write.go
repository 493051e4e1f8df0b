package client

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/proto"
)

// WriteOption changes how a write is done: [Idempotent], [Guaranteed] or
// [Compressed].
type WriteOption interface{ writeOption() }

// WriteFlag is a [WriteOption] that is on or off.
type WriteFlag uint8

const (
	// Idempotent allows the Client to repeat a write that the server may have executed. You
	// should use it only for writes that can safely run twice: e.g. a repeated Set to any
	// version overwrites data that another client may have written in between. A repeated
	// Delete succeeds if the znode doesn't exist. A repeated write to a version may fail
	// with [ErrBadVersion] although it took effect. Every error of a write that was repeated
	// matches [ErrUnknownOutcome].
	Idempotent WriteFlag = 1 << iota

	// Guaranteed continues a Delete in the background if its outcome is unknown or if
	// ctx ended first, until the znode is gone, the session is lost, or the Client is
	// closed. The error still reports what happened in the foreground. The background
	// Delete uses the same version.
	Guaranteed
)

func (WriteFlag) writeOption() {}

// DataFlag is an option of every operation that reads or writes data.
type DataFlag uint8

// Compressed compresses data before it is written, and decompresses data after it is
// read; see [WithCompression]. Reading uncompressed data with this option fails.
const Compressed DataFlag = 1

func (DataFlag) writeOption()  {}
func (DataFlag) readOption()   {}
func (DataFlag) createOption() {}

// writeOptions is the set of options of a write.
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

// Set replaces the data of the znode at path if the znode has this version, or
// unconditionally with [AnyVersion], and returns its metadata. nil data is stored as
// null.
//
// If the connection is lost, the session expires or ctx ends after the request was sent, the
// error matches [ErrUnknownOutcome]. [ErrBadVersion] means that another client was faster.
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
// unconditionally with [AnyVersion].
//
// It returns the same errors as Set.
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32, opts ...WriteOption) (Stat, error) {
	k, err := c.perform(ctx, request{op: proto.OpSetACL, path: path, acl: acl, num: version, safe: writeOpts(opts).idempotent})
	if err != nil {
		return Stat{}, err
	}
	defer c.core.free(k)
	return k.stat, nil
}

// Delete deletes the znode at path if the znode has this version, or unconditionally
// with [AnyVersion]. It fails with [ErrNotEmpty] if the znode has children; see
// DeleteAll.
//
// Otherwise it returns the same errors as Set. With [Guaranteed], the Client retries the Delete
// in the background.
func (c *Client) Delete(ctx context.Context, path string, version int32, opts ...WriteOption) error {
	o := writeOpts(opts)
	k, repeated, err := c.performAgain(ctx, request{op: proto.OpDelete, path: path, num: version, safe: o.idempotent})
	err = c.finish(k, err)
	if repeated && errors.Is(err, ErrNoNode) {
		return nil // our first try may have deleted it
	}
	if o.guaranteed && undone(err) {
		c.deleteInBackground(path, version)
	}
	return err
}

// undone reports whether a write failed for a temporary reason.
func undone(err error) bool {
	return errors.Is(err, ErrUnknownOutcome) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrThrottledOp)
}

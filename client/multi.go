package client

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Op is one operation of a transaction: see [CreateOp], [SetOp], [DeleteOp] and
// [CheckOp].
type Op struct {
	op      proto.Op
	path    string
	data    []byte
	version int32
	create  createOptions
}

// CreateOp creates a znode. It ignores the options CreateParents and Protected.
func CreateOp(path string, data []byte, opts ...CreateOption) Op {
	return Op{op: proto.OpCreate2, path: path, data: data, create: createOpts(opts)}
}

// SetOp replaces the data of a znode.
func SetOp(path string, data []byte, version int32) Op {
	return Op{op: proto.OpSetData, path: path, data: data, version: version}
}

// DeleteOp deletes a znode.
func DeleteOp(path string, version int32) Op {
	return Op{op: proto.OpDelete, path: path, version: version}
}

// CheckOp makes the transaction fail unless the znode at path exists and has this
// version.
func CheckOp(path string, version int32) Op {
	return Op{op: proto.OpCheck, path: path, version: version}
}

// Result is the result of one operation of a transaction.
type Result struct {
	// Path is the path of a created znode.
	Path string
	// Stat is the metadata of a created or changed znode. It is zero for a znode
	// created by a server before ZooKeeper 3.8.2.
	Stat Stat
	// Err is why the operation failed, or [ErrRuntimeInconsistency] if another one
	// made the transaction fail.
	Err error
}

// MultiError identifies the operation that made a transaction fail. It matches the same
// errors as the operation's error.
type MultiError struct {
	// Index is the operation's index, from 0.
	Index int
	// Err is its error.
	Err *Error
}

// Error returns a text with the operation's index and its error.
func (e *MultiError) Error() string {
	return fmt.Sprintf("operation %d of a transaction: %v", e.Index, e.Err)
}

// Unwrap returns the operation's error.
func (e *MultiError) Unwrap() error { return e.Err }

// multiResult is one entry of the reply.
type multiResult struct {
	op   proto.Op
	code Code
	answer
}

// Multi executes all operations in one transaction, or none. If the server refuses one, the
// error is a [*MultiError], and each result contains the operation's own error.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	var m proto.MultiRequest
	for i := range ops {
		op, err := c.multiOp(&ops[i])
		if err != nil {
			return nil, err
		}
		m.Ops = append(m.Ops, op)
	}
	k, err := c.perform(ctx, request{op: proto.OpMulti, rec: &m, noCheck: true})
	if err != nil {
		return nil, err
	}
	defer c.core.free(k)
	if len(k.results) != len(ops) {
		return nil, &Error{Op: "multi", Unknown: true, Err: fmt.Errorf("%w: %d results for %d operations", ErrProtocol, len(k.results), len(ops))}
	}
	return c.multiResults(ops, k.results)
}

// multiResults converts the reply to results.
func (c *Client) multiResults(ops []Op, replies []multiResult) ([]Result, error) {
	results := make([]Result, len(ops))
	var failed *MultiError
	for i, a := range replies {
		if a.op != proto.OpError {
			results[i].Stat = a.stat
			if a.text != "" {
				results[i].Path = stripPrefix(a.text, c.prefix)
			}
			continue
		}
		e := &Error{Op: ops[i].op.String(), Path: ops[i].path, Code: a.code}
		if a.code == 0 {
			e.Code = ErrRuntimeInconsistency // the server rolled it back
		} else if a.code != ErrRuntimeInconsistency && failed == nil {
			failed = &MultiError{Index: i, Err: e}
		}
		results[i].Err = e
	}
	switch {
	case failed != nil:
		return results, failed
	case len(replies) > 0 && replies[0].op == proto.OpError:
		return results, &MultiError{Err: results[0].Err.(*Error)}
	}
	return results, nil
}

// multiOp converts an operation to its wire record.
func (c *Client) multiOp(o *Op) (proto.MultiOp, error) {
	full := joinPath(c.prefix, o.path)
	if o.op == proto.OpCreate2 {
		q, err := c.createRequest(o.path, o.data, &o.create)
		if err != nil {
			return proto.MultiOp{}, err
		}
		if q.op == proto.OpCreateTTL {
			return proto.MultiOp{Op: q.op, Req: &proto.CreateTTLRequest{Path: full, Data: q.data, ACL: q.acl, Flags: q.num, TTL: q.ttl}}, nil
		}
		return proto.MultiOp{Op: q.op, Req: &proto.CreateRequest{Path: full, Data: q.data, ACL: q.acl, Flags: q.num}}, nil
	}
	if err := c.check(o.op, o.path); err != nil {
		return proto.MultiOp{}, err
	}
	var req proto.Record
	switch o.op {
	case proto.OpSetData:
		req = &proto.SetDataRequest{Path: full, Data: o.data, Version: o.version}
	case proto.OpDelete, proto.OpCheck:
		req = &proto.VersionRecord{Path: full, Version: o.version}
	default:
		return proto.MultiOp{}, &Error{Op: "multi", Code: ErrBadArguments, Err: fmt.Errorf("an empty Op")}
	}
	return proto.MultiOp{Op: o.op, Req: req}, nil
}

// decodeMulti reads the reply to multi or multiRead.
func decodeMulti(r *proto.Reader) []multiResult {
	var all []multiResult
	for {
		var h proto.MultiHeader
		h.Decode(r)
		if h.Done || r.Err() != nil {
			return all
		}
		m := multiResult{op: h.Op, code: h.Err}
		switch {
		case h.Op == proto.OpError:
			var e proto.ErrorResponse
			e.Decode(r)
			m.code = Code(e.Err)
		case h.Op.InMulti():
			m.decode(h.Op, r)
		default:
			r.Fail(fmt.Errorf("a result of operation %d", h.Op))
		}
		all = append(all, m)
	}
}

// ReadOp is one read of [Client.MultiRead]: see [GetOp] and [ChildrenOp].
type ReadOp struct {
	op   proto.Op
	path string
}

// GetOp reads data and metadata.
func GetOp(path string) ReadOp { return ReadOp{proto.OpGetData, path} }

// ChildrenOp reads the names of the children.
func ChildrenOp(path string) ReadOp { return ReadOp{proto.OpGetChildren, path} }

// ReadResult is the result of one read.
type ReadResult struct {
	Data     []byte   // of GetOp
	Stat     Stat     // of GetOp
	Children []string // of ChildrenOp
	Err      error
}

// MultiRead makes several reads in one request. Each has its own error. It retries
// after a lost connection. Servers support it since ZooKeeper 3.6.
func (c *Client) MultiRead(ctx context.Context, ops ...ReadOp) ([]ReadResult, error) {
	var m proto.MultiRequest
	for _, o := range ops {
		if err := c.check(o.op, o.path); err != nil {
			return nil, err
		}
		m.Ops = append(m.Ops, proto.MultiOp{Op: o.op, Req: &proto.WatchRecord{Path: joinPath(c.prefix, o.path)}})
	}
	k, err := c.perform(ctx, request{op: proto.OpMultiRead, rec: &m, noCheck: true, safe: true})
	if err != nil {
		return nil, err
	}
	defer c.core.free(k)
	if len(k.results) != len(ops) {
		return nil, &Error{Op: "multiRead", Err: fmt.Errorf("%w: %d results for %d operations", ErrProtocol, len(k.results), len(ops))}
	}
	results := make([]ReadResult, len(ops))
	for i, a := range k.results {
		results[i] = ReadResult{Data: a.bytes, Stat: a.stat, Children: a.texts}
		if a.op == proto.OpError {
			results[i].Err = &Error{Op: ops[i].op.String(), Path: ops[i].path, Code: a.code}
		}
	}
	return results, nil
}

// Txn collects the operations of a transaction:
//
//	results, err := c.Txn().Check("/lock", v).Set("/data", data, client.AnyVersion).Commit(ctx)
//
// A Txn is not safe for concurrent use.
type Txn struct {
	client *Client
	ops    []Op
}

// Txn begins a transaction. The Client sends nothing before Commit.
func (c *Client) Txn() *Txn { return &Txn{client: c} }

// Create appends [CreateOp].
func (t *Txn) Create(path string, data []byte, opts ...CreateOption) *Txn {
	return t.Append(CreateOp(path, data, opts...))
}

// Set appends [SetOp].
func (t *Txn) Set(path string, data []byte, version int32) *Txn {
	return t.Append(SetOp(path, data, version))
}

// Delete appends [DeleteOp].
func (t *Txn) Delete(path string, version int32) *Txn { return t.Append(DeleteOp(path, version)) }

// Check appends [CheckOp].
func (t *Txn) Check(path string, version int32) *Txn { return t.Append(CheckOp(path, version)) }

// Append appends operations.
func (t *Txn) Append(ops ...Op) *Txn {
	t.ops = append(t.ops, ops...)
	return t
}

// Commit executes all operations or none, like [Client.Multi].
func (t *Txn) Commit(ctx context.Context) ([]Result, error) { return t.client.Multi(ctx, t.ops...) }

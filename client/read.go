package client

import (
	"context"

	"github.com/zkgo/zkgo/proto"
)

// ReadOption changes how a read is done: [Linearizable] or [Compressed].
type ReadOption interface{ readOption() }

// ReadFlag is a [ReadOption] that is on or off.
type ReadFlag uint8

// Linearizable makes a read see every write that any client got a reply for before the read
// began. By default, the server may return older state, but never older than the state that
// this Client has already seen. The option costs a sync, which we send in the same packet.
const Linearizable ReadFlag = 1

func (ReadFlag) readOption() {}

// readOptions is the set of options of a read.
type readOptions struct {
	linear     bool
	compressed bool
}

func readOpts(opts []ReadOption) (o readOptions) {
	for _, opt := range opts {
		switch opt.(type) {
		case ReadFlag:
			o.linear = true
		case DataFlag:
			o.compressed = true
		}
	}
	return o
}

// Get returns the data and the metadata of the znode at path. Null data is nil; empty
// data is not nil.
//
// Get retries after a lost connection, and fails if the session expires. [ErrNoNode] means
// that there is no such znode.
func (c *Client) Get(ctx context.Context, path string, opts ...ReadOption) ([]byte, Stat, error) {
	data, stat, _, err := c.get(ctx, path, false, readOpts(opts))
	return data, stat, err
}

// GetW is like Get, and sets a one-shot watch for the next change or deletion. It
// sets no watch if it fails, or if ctx ends before the reply arrives.
func (c *Client) GetW(ctx context.Context, path string, opts ...ReadOption) ([]byte, Stat, *Watch, error) {
	return c.get(ctx, path, true, readOpts(opts))
}

func (c *Client) get(ctx context.Context, path string, watch bool, o readOptions) ([]byte, Stat, *Watch, error) {
	k, err := c.perform(ctx, request{op: proto.OpGetData, path: path, linear: o.linear, watch: watch, kind: kindData, safe: true})
	if err != nil {
		return nil, Stat{}, nil, err
	}
	defer c.core.free(k)
	data := k.bytes
	if o.compressed {
		if data, err = c.core.cfg.decompress(data); err != nil {
			if k.watcher != nil {
				c.core.drop(k.watcher)
			}
			return nil, Stat{}, nil, &Error{Op: k.op.String(), Path: path, Err: err}
		}
	}
	return data, k.stat, k.watcher, nil
}

// Exists reports whether there is a znode at path, and returns its metadata.
//
// Exists retries after a lost connection, and fails if the session expires.
func (c *Client) Exists(ctx context.Context, path string, opts ...ReadOption) (Stat, bool, error) {
	stat, found, _, err := c.exists(ctx, path, false, readOpts(opts))
	return stat, found, err
}

// ExistsW is like Exists, and sets a one-shot watch for the creation, the next change
// or the deletion. It sets no watch if it fails, or if ctx ends before the reply
// arrives.
func (c *Client) ExistsW(ctx context.Context, path string, opts ...ReadOption) (Stat, bool, *Watch, error) {
	return c.exists(ctx, path, true, readOpts(opts))
}

func (c *Client) exists(ctx context.Context, path string, watch bool, o readOptions) (Stat, bool, *Watch, error) {
	k, err := c.perform(ctx, request{op: proto.OpExists, path: path, linear: o.linear, watch: watch, kind: kindData, safe: true})
	if err != nil {
		return Stat{}, false, nil, err
	}
	defer c.core.free(k)
	return k.stat, k.code == 0, k.watcher, nil
}

// Children returns the names of the children of the znode at path, in no particular
// order, and the znode's metadata.
//
// Children retries after a lost connection, and fails if the session expires. [ErrNoNode]
// means that there is no such znode.
func (c *Client) Children(ctx context.Context, path string, opts ...ReadOption) ([]string, Stat, error) {
	names, stat, _, err := c.children(ctx, path, false, readOpts(opts))
	return names, stat, err
}

// ChildrenW is like Children, and sets a one-shot watch for the next child that is
// created or deleted and for the deletion of the znode itself. It sets no watch if it
// fails, or if ctx ends before the reply arrives.
func (c *Client) ChildrenW(ctx context.Context, path string, opts ...ReadOption) ([]string, Stat, *Watch, error) {
	return c.children(ctx, path, true, readOpts(opts))
}

func (c *Client) children(ctx context.Context, path string, watch bool, o readOptions) ([]string, Stat, *Watch, error) {
	k, err := c.perform(ctx, request{op: proto.OpGetChildren2, path: path, linear: o.linear, watch: watch, kind: kindChild, safe: true})
	if err != nil {
		return nil, Stat{}, nil, err
	}
	defer c.core.free(k)
	return k.texts, k.stat, k.watcher, nil
}

// GetACL returns the ACL and the metadata of the znode at path. The server blanks
// digests unless the client has admin permission on the znode.
func (c *Client) GetACL(ctx context.Context, path string, opts ...ReadOption) ([]ACL, Stat, error) {
	k, err := c.perform(ctx, request{op: proto.OpGetACL, path: path, linear: readOpts(opts).linear, safe: true})
	if err != nil {
		return nil, Stat{}, err
	}
	defer c.core.free(k)
	return k.acls, k.stat, nil
}

// Sync returns when the server has applied all writes that the leader had completed when it
// received the sync. A later read sees these writes. Sync covers the whole tree, regardless
// of the path. For a single read, you should use [Linearizable] instead.
func (c *Client) Sync(ctx context.Context, path string) error {
	return c.finish(c.perform(ctx, request{op: proto.OpSync, path: path, safe: true}))
}

// Ephemerals returns the paths of this session's ephemeral znodes that start with
// prefix. It compares text: "/a" also matches "/ab". Paths are relative to this
// Client's chroot and namespace, and those outside are omitted. Servers support it
// since ZooKeeper 3.6.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	k, err := c.perform(ctx, request{op: proto.OpGetEphemerals, path: prefix, noCheck: true, safe: true})
	if err != nil {
		return nil, err
	}
	defer c.core.free(k)
	paths := k.texts[:0]
	for _, p := range k.texts {
		if within(p, c.prefix) {
			paths = append(paths, stripPrefix(p, c.prefix))
		}
	}
	return paths, nil
}

// within reports whether path is prefix or below it.
func within(path, prefix string) bool {
	return len(path) >= len(prefix) && path[:len(prefix)] == prefix && (len(path) == len(prefix) || prefix == "" || path[len(prefix)] == '/')
}

// ChildrenCount returns the number of all znodes below path, at any depth. Servers
// support it since ZooKeeper 3.6.
func (c *Client) ChildrenCount(ctx context.Context, path string) (int, error) {
	k, err := c.perform(ctx, request{op: proto.OpGetAllChildrenNumber, path: path, safe: true})
	if err != nil {
		return 0, err
	}
	defer c.core.free(k)
	return int(k.total), nil
}

// WhoAmI returns the identities of this connection, as the server knows them, without
// secrets. Servers support it since ZooKeeper 3.7.
func (c *Client) WhoAmI(ctx context.Context) ([]ID, error) {
	k, err := c.perform(ctx, request{op: proto.OpWhoAmI, noCheck: true, safe: true})
	if err != nil {
		return nil, err
	}
	defer c.core.free(k)
	return k.clients, nil
}

// finish frees a successful call that returns no body.
func (c *Client) finish(k *call, err error) error {
	if err == nil {
		c.core.free(k)
	}
	return err
}

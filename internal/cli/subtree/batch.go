package subtree

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
)

// Limits of one transaction. We want enough operations to amortize the round trip and the
// fsync, and few enough bytes not to delay the requests queued after it.
const (
	batchOps   = 500
	batchBytes = 256 << 10
)

// ActionKind is the type of an Action.
type ActionKind string

// The kinds of action.
const (
	ActionCreate ActionKind = "create"
	ActionSet    ActionKind = "set"    // its data
	ActionSetACL ActionKind = "setAcl" // its ACL
	ActionDelete ActionKind = "delete"
	ActionKeep   ActionKind = "keep" // the znode differs and isn't changed
	ActionSkip   ActionKind = "skip" // the znode isn't copied
)

// Action is a change of one znode that was made, or would be made in a dry run.
type Action struct {
	Kind ActionKind `json:"action"`
	// Path is the path in the changed tree.
	Path string `json:"path"`
	// Bytes is the size of the written data.
	Bytes int `json:"bytes,omitempty"`
	// Why is the reason for ActionKeep and ActionSkip.
	Why string `json:"why,omitempty"`
}

// write is an action with the operations to execute it and to check whether it
// happened.
type write struct {
	Action
	op     client.Op
	plain  func(context.Context) error // the same as a single request
	size   int
	happen func(ctx context.Context) (bool, error)
}

// batch groups writes into transactions. It preserves the order of add.
type batch struct {
	c      *client.Client
	done   func(Action)
	writes []write
	size   int
}

func newBatch(c *client.Client, done func(Action)) *batch {
	return &batch{c: c, done: done}
}

// add appends a write. It flushes first if the transaction would become too large.
func (b *batch) add(ctx context.Context, w write) error {
	if len(b.writes) >= batchOps || len(b.writes) > 0 && b.size+w.size > batchBytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.writes = append(b.writes, w)
	b.size += w.size
	return nil
}

// flush executes the queued writes. An error names the znode. In that case the transaction
// had no effect.
func (b *batch) flush(ctx context.Context) error {
	writes := b.writes
	b.writes, b.size = nil, 0
	if len(writes) == 0 {
		return nil
	}
	if err := b.commit(ctx, writes); err != nil {
		return err
	}
	for _, w := range writes {
		b.done(w.Action)
	}
	return nil
}

// commit executes a transaction exactly once. If the outcome is unknown because the
// connection was lost, we read the first znode: it shows whether the whole transaction
// happened.
func (b *batch) commit(ctx context.Context, writes []write) error {
	first := &writes[0]
	for unknown := false; ; unknown = true {
		err := b.try(ctx, writes)
		if err == nil {
			return nil
		}
		lost := errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil
		if !lost && !unknown {
			return refusal(writes, err)
		}
		if serr := b.c.Sync(ctx, "/"); serr != nil {
			return refusal(writes, err)
		}
		did, herr := first.happen(ctx)
		switch {
		case herr == nil && did:
			return nil
		case herr != nil || !lost:
			return refusal(writes, err)
		}
	}
}

// try sends a transaction. We send a single write as a plain request, which may be larger.
func (b *batch) try(ctx context.Context, writes []write) error {
	if len(writes) == 1 {
		return writes[0].plain(ctx)
	}
	ops := make([]client.Op, len(writes))
	for i, w := range writes {
		ops[i] = w.op
	}
	_, err := b.c.Multi(ctx, ops...)
	return err
}

// refusal adds the znode for which a transaction failed to the error.
func refusal(writes []write, err error) error {
	var multi *client.MultiError
	i := 0
	if errors.As(err, &multi) && multi.Index < len(writes) {
		i = multi.Index
	}
	return conflict(writes[i].Path, err)
}

// createWrite returns a write that creates a znode.
func createWrite(c *client.Client, path string, n *Node, acl []client.ACL) write {
	opts := []client.CreateOption{client.WithACL(acl...)}
	switch {
	case n.Container:
		opts = append(opts, client.Container)
	case n.TTL > 0:
		opts = append(opts, client.WithTTL(n.TTL))
	}
	size := len(path) + len(n.Data) + 64
	for _, a := range acl {
		size += len(a.ID.Scheme) + len(a.ID.ID) + 12
	}
	return write{
		Action: Action{Kind: ActionCreate, Path: path, Bytes: len(n.Data)},
		op:     client.CreateOp(path, n.Data, opts...),
		size:   size,
		plain: func(ctx context.Context) error {
			_, err := c.Create(ctx, path, n.Data, opts...)
			return err
		},
		happen: func(ctx context.Context) (bool, error) {
			data, st, err := c.Get(ctx, path)
			if errors.Is(err, client.ErrNoNode) {
				return false, nil
			}
			return err == nil && st.Version == 0 && sameData(data, n.Data), err
		},
	}
}

// setWrite returns a write that replaces the data of the znode with this Stat.
func setWrite(c *client.Client, path string, data []byte, st client.Stat) write {
	return write{
		Action: Action{Kind: ActionSet, Path: path, Bytes: len(data)},
		op:     client.SetOp(path, data, st.Version),
		size:   len(path) + len(data) + 64,
		plain: func(ctx context.Context) error {
			_, err := c.Set(ctx, path, data, st.Version)
			return err
		},
		happen: func(ctx context.Context) (bool, error) {
			now, nst, err := c.Get(ctx, path)
			return err == nil && nst.Czxid == st.Czxid && nst.Version == st.Version+1 && sameData(now, data), err
		},
	}
}

// deleteWrite returns a write that deletes the znode with this version, or with
// AnyVersion any znode at the path.
func deleteWrite(c *client.Client, path string, version int32) write {
	return write{
		Action: Action{Kind: ActionDelete, Path: path},
		op:     client.DeleteOp(path, version),
		size:   len(path) + 64,
		plain:  func(ctx context.Context) error { return c.Delete(ctx, path, version) },
		happen: func(ctx context.Context) (bool, error) {
			_, found, err := c.Exists(ctx, path)
			return err == nil && !found, err
		},
	}
}

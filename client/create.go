package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// CreateOption changes how a znode is created: a [CreateFlag], [WithACL],
// [WithTTL] or [Compressed].
type CreateOption interface{ createOption() }

// CreateFlag is a [CreateOption] that is on or off.
type CreateFlag uint8

const (
	// Ephemeral makes a znode that is deleted when this session ends. It can't have
	// children.
	Ephemeral CreateFlag = 1 << iota
	// Sequential appends a ten-digit number to the name. The number is higher than that of
	// any sibling created before. The path may end with a slash.
	Sequential
	// Container makes a znode that the server deletes some time after its last child
	// is gone.
	Container
	// CreateParents creates the missing ancestors of the znode. They are persistent
	// and have the ACL that [WithACLProvider] gives them.
	CreateParents
	// CreateParentContainers is CreateParents with containers, which the server
	// deletes when they are empty.
	CreateParentContainers
	// Protected makes a create safe to repeat. The name gets a random prefix in
	// Curator's format ("_c_", a UUID, "-"), and the Client uses it to find the znode
	// if it gets no reply to the create. The returned path contains the prefix. If
	// the create fails or ctx ends although the znode may exist, the Client deletes
	// it in the background.
	Protected
)

func (CreateFlag) createOption() {}

type (
	aclOption []ACL
	ttlOption time.Duration
)

func (aclOption) createOption() {}
func (ttlOption) createOption() {}

// WithACL sets the ACL of a znode.
func WithACL(acl ...ACL) CreateOption { return aclOption(acl) }

// WithTTL makes a persistent znode that the server deletes some time after it has had
// no children and no writes for d. The precision is a millisecond. A server refuses
// the create with [ErrUnimplemented] unless extended types are enabled.
func WithTTL(d time.Duration) CreateOption { return ttlOption(d) }

// createOptions is the set of options of a create.
type createOptions struct {
	flags      CreateFlag
	acl        []ACL
	ttl        time.Duration
	hasTTL     bool
	compressed bool
}

func createOpts(opts []CreateOption) (o createOptions) {
	for _, opt := range opts {
		switch v := opt.(type) {
		case CreateFlag:
			o.flags |= v
		case aclOption:
			o.acl = v
		case ttlOption:
			o.ttl, o.hasTTL = time.Duration(v), true
		case DataFlag:
			o.compressed = true
		}
	}
	return o
}

func (o *createOptions) is(f CreateFlag) bool { return o.flags&f != 0 }

// mode returns the operation and the create mode for the options.
func (o *createOptions) mode() (proto.Op, proto.CreateMode, error) {
	eph, seq := o.is(Ephemeral), o.is(Sequential)
	switch {
	case o.hasTTL && (eph || o.is(Container)), eph && o.is(Container), seq && o.is(Container):
		return proto.OpCreate2, 0, errors.New("the options exclude one another")
	case o.hasTTL && (o.ttl < time.Millisecond || o.ttl.Milliseconds() > proto.MaxTTL):
		return proto.OpCreateTTL, 0, fmt.Errorf("a time to live of %v", o.ttl)
	case o.hasTTL && seq:
		return proto.OpCreateTTL, proto.ModePersistentSequentialTTL, nil
	case o.hasTTL:
		return proto.OpCreateTTL, proto.ModePersistentTTL, nil
	case o.is(Container):
		return proto.OpCreateContainer, proto.ModeContainer, nil
	case eph && seq:
		return proto.OpCreate2, proto.ModeEphemeralSequential, nil
	case eph:
		return proto.OpCreate2, proto.ModeEphemeral, nil
	case seq:
		return proto.OpCreate2, proto.ModePersistentSequential, nil
	}
	return proto.OpCreate2, proto.ModePersistent, nil
}

// Create creates a znode and returns its path, which differs from the path argument
// if the znode is [Sequential] or [Protected]. nil data is stored as null.
//
// If the connection is lost, the session expires or ctx ends after the request was sent, the
// error matches [ErrUnknownOutcome]; see [Protected]. [ErrNodeExists] means that the znode
// already exists, [ErrNoNode] that the parent doesn't exist.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	created, _, err := c.CreateStat(ctx, path, data, opts...)
	return created, err
}

// CreateStat is Create, and returns the znode's metadata too.
func (c *Client) CreateStat(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, Stat, error) {
	o := createOpts(opts)
	q, err := c.createRequest(path, data, &o)
	if err != nil {
		return "", Stat{}, err
	}
	if o.is(Protected) {
		return c.createProtected(ctx, q, &o)
	}
	return c.createWithParents(ctx, q, &o)
}

// createRequest validates the options and the path, and returns the request.
func (c *Client) createRequest(path string, data []byte, o *createOptions) (request, error) {
	op, mode, err := o.mode()
	valid := path
	if o.is(Sequential) {
		valid += "1" // the server appends more digits, which makes "/dir/" a valid path
	}
	if err == nil {
		err = c.wrong
	}
	if err == nil {
		err = proto.ValidatePath(valid)
	}
	if err != nil {
		return request{}, &Error{Op: op.String(), Path: path, Code: ErrBadArguments, Err: err}
	}
	if o.compressed {
		if data, err = c.core.cfg.compression.Compress(data); err != nil {
			return request{}, &Error{Op: op.String(), Path: path, Err: err}
		}
	}
	acl := o.acl
	if acl == nil {
		acl = c.defaultACL(path)
	}
	return request{op: op, path: path, data: data, acl: acl, num: int32(mode), ttl: o.ttl.Milliseconds(), noCheck: true}, nil
}

func (c *Client) defaultACL(path string) []ACL {
	if f := c.core.cfg.aclProvider; f != nil {
		if acl := f(path); len(acl) > 0 {
			return acl
		}
	}
	return c.core.openACL
}

// createWithParents creates a znode. If the parent doesn't exist and the options
// allow it, it also creates the missing ancestors.
func (c *Client) createWithParents(ctx context.Context, q request, o *createOptions) (string, Stat, error) {
	for {
		k, err := c.perform(ctx, q)
		if err == nil {
			defer c.core.free(k)
			return stripPrefix(k.text, c.prefix), k.stat, nil
		}
		if !errors.Is(err, ErrNoNode) || !o.is(CreateParents|CreateParentContainers) {
			return "", Stat{}, err
		}
		// Another client may delete an empty parent immediately, in which case we retry.
		created, perr := c.createParents(ctx, q.path, o.is(CreateParentContainers))
		if perr != nil {
			return "", Stat{}, perr
		}
		if !created {
			return "", Stat{}, err
		}
	}
}

// createParents creates the missing ancestors of path, including those in the chroot
// and the namespace. It reports false if path has no ancestor but the root.
func (c *Client) createParents(ctx context.Context, path string, containers bool) (bool, error) {
	root := *c
	root.prefix = ""
	full := joinPath(c.prefix, path)
	parent := full[:strings.LastIndexByte(full, '/')]
	if parent == "" {
		return false, nil
	}
	return true, root.ensure(ctx, parent, len(c.prefix), containers)
}

// ensure creates a path and its missing ancestors. We try the path itself first, because
// most of the ancestors usually exist.
func (c *Client) ensure(ctx context.Context, path string, prefix int, containers bool) error {
	seen := path
	if len(path) > prefix {
		seen = path[prefix:]
	}
	q := request{op: proto.OpCreate2, path: path, acl: c.defaultACL(seen), safe: true}
	if containers {
		q.op, q.num = proto.OpCreateContainer, int32(proto.ModeContainer)
	}
	for {
		err := c.finish(c.perform(ctx, q))
		if err == nil || errors.Is(err, ErrNodeExists) {
			return nil
		}
		if errors.Is(err, ErrNoAuth) {
			// The server checks the parent's permission before anything else.
			if _, found, xerr := c.Exists(ctx, path); xerr == nil && found {
				return nil
			}
		}
		i := strings.LastIndexByte(path, '/')
		if !errors.Is(err, ErrNoNode) || i == 0 {
			return err
		}
		if err := c.ensure(ctx, path[:i], prefix, containers); err != nil {
			return err
		}
	}
}

// EnsurePath creates the znode at path, without data, and its ancestors, unless they
// exist.
func (c *Client) EnsurePath(ctx context.Context, path string) error {
	if err := c.check(proto.OpCreate2, path); err != nil {
		return err
	}
	full := joinPath(c.prefix, path)
	if full == "/" {
		return nil
	}
	root := *c
	root.prefix = ""
	return root.ensure(ctx, full, len(c.prefix), false)
}

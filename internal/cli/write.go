package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
)

// writeCommands returns the commands that create, change and delete znodes.
func writeCommands() []Command {
	return []Command{
		{
			Name: "create", Usage: "[-s] [-e] [-c] [-t ttl] path [data] [acl]", Verb: "create path [data] [acl]", Short: "create a znode", Least: 1, Most: 3, Run: create, More: valueHelp,
			Options: []Option{
				{Name: "e", Long: "ephemeral", Help: "ephemeral"}, {Name: "s", Long: "sequential", Help: "sequential"}, {Name: "c", Long: "container", Help: "container"},
				{Name: "t", Long: "ttl", Arg: "ttl", Help: "time to live in milliseconds"},
				{Name: "p", Long: "parents", Help: "also create missing parents"},
			},
		},
		{
			Name: "set", Usage: "path data [-s] [-v version] [-b]", Verb: "set path data", Short: "replace the data of a znode", Least: 2, Most: 2, Run: set, More: valueHelp, ListOptions: true,
			Options: []Option{
				{Name: "s", Long: "stat", Help: "Print znode stats additionally"}, {Name: "v", Long: "version", Arg: "version", Help: "Set with an expected version"},
				{Name: "b", Long: "base64", Help: "Supply data in base64 format"},
			},
		},
		{
			Name: "delete", Usage: "[-v version] path", Verb: "delete path...", Short: "delete znodes", Least: 1, Most: Any, Run: remove,
			Options: []Option{{Name: "v", Long: "version", Arg: "version", Help: "delete only this version"}},
		},
		{
			Name: "deleteall", Usage: "path [-b batch size]", Verb: "deleteall path...", Short: "delete znodes and their descendants", Least: 1, Most: Any, Run: deleteAll,
			Options: []Option{{Name: "b", Long: "batch", Arg: "size", Help: "number of znodes to delete in one transaction"}},
		},
	}
}

// version parses a version; "" means any version.
func version(text string) (int32, error) {
	if text == "" {
		return client.AnyVersion, nil
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, misuse("a version is a number, not %q", text)
	}
	return int32(v), nil
}

func create(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	opts, err := createOptions(c)
	if err != nil {
		return err
	}
	path := c.Args[0]
	checked := path
	if c.Has("s") {
		checked += "1" // a name may end with a slash if a number follows
	}
	if err := checkPath(checked); err != nil {
		return err
	}
	var data []byte
	if len(c.Args) > 1 {
		if data, err = c.value(1); err != nil {
			return err
		}
	}
	if len(c.Args) > 2 {
		acl, err := parseACL(c.Args[2], keeperCode("InvalidACL", "")+"\n"+emptyACL)
		if err != nil {
			return err
		}
		opts = append(opts, client.WithACL(acl...))
	}
	created, err := zk.Create(ctx, path, data, opts...)
	switch {
	case errors.Is(err, client.ErrNoNode):
		return noParent(path, "create -p creates the parents as well")
	case errors.Is(err, client.ErrInvalidACL):
		fmt.Fprintln(c.Err, keeperCode("InvalidACL", path))
	case errors.Is(err, client.ErrEphemeralOnLocalSession):
		fmt.Fprintln(c.Err, "Unable to create ephemeral node on a local session")
	}
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.Emit(map[string]string{"path": created}, nil)
	}
	fmt.Fprintln(c.Err, "Created "+created)
	return nil
}

// noParent returns the error of a create without a parent, with a hint.
func noParent(path, hint string) error {
	parent := proto.Parent(path)
	return &Exit{Code: codeFailed, Message: fmt.Sprintf("Node does not exist: %s, the parent of %s: %s", parent, path, hint), Err: client.ErrNoNode}
}

// createOptions converts the options that select the kind of znode.
func createOptions(c *Call) (opts []client.CreateOption, err error) {
	if c.Has("c") && (c.Has("e") || c.Has("s")) {
		return nil, misuse("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	}
	var ttl int64
	if c.Has("t") {
		if ttl, err = strconv.ParseInt(c.Value("t"), 10, 64); err != nil {
			return nil, misuse("-t argument must be a long value")
		}
	}
	switch {
	case c.Has("t") && c.Has("e"):
		return nil, misuse("TTLs cannot be used with Ephemeral znodes")
	case c.Has("t") && c.Has("c"):
		return nil, misuse("TTLs cannot be used with Container znodes")
	case c.Has("t") && (ttl <= 0 || ttl > proto.MaxTTL):
		return nil, misuse("ttl must be positive and cannot be larger than: %d", int64(proto.MaxTTL))
	case c.Has("t"):
		opts = append(opts, client.WithTTL(time.Duration(ttl)*time.Millisecond))
	}
	if c.Has("p") {
		opts = append(opts, client.CreateParents)
	}
	for option, flag := range map[string]client.CreateFlag{"e": client.Ephemeral, "s": client.Sequential, "c": client.Container} {
		if c.Has(option) {
			opts = append(opts, flag)
		}
	}
	return opts, nil
}

func set(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	path := c.Args[0]
	data, err := c.value(1)
	if err != nil {
		return err
	}
	if c.Has("b") {
		if data, err = decodeBase64(string(bytes.TrimSpace(data))); err != nil {
			return err
		}
	}
	v, err := version(c.Value("v"))
	if err != nil {
		return err
	}
	stat, err := zk.Set(ctx, path, data, v)
	if err != nil {
		return err
	}
	return c.emitStat(path, stat)
}

// decodeBase64 decodes Base64 with or without padding.
func decodeBase64(text string) ([]byte, error) {
	coding := base64.StdEncoding
	if len(text)%4 != 0 {
		coding = base64.RawStdEncoding
	}
	data, err := coding.DecodeString(text)
	if err != nil {
		return nil, misuse("the data is not valid base64: %v", err)
	}
	return append([]byte{}, data...), nil
}

// emitStat prints a znode's new metadata if -s was given.
func (c *Call) emitStat(path string, stat client.Stat) error {
	if !c.Has("s") {
		return nil
	}
	return c.Emit(map[string]any{"path": path, "stat": NewStat(stat)}, func(w io.Writer) { printStat(w, c.Term, stat) })
}

func remove(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	text := c.Value("v")
	if len(c.Args) == 2 && !strings.HasPrefix(c.Args[1], "/") {
		fmt.Fprintln(c.Err, "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.")
		if text == "" {
			text = c.Args[1]
		}
		c.Args = c.Args[:1]
	}
	v, err := version(text)
	if err != nil {
		return err
	}
	return c.eachPath(ctx, func(ctx context.Context, path string) error { return zk.Delete(ctx, path, v) })
}

// Defaults of deleteall.
const (
	deleteBatch = 1000
	// deleteBytes limits the bytes of paths in one transaction. It's less than the
	// smallest request limit of servers.
	deleteBytes = 256 << 10
)

func deleteAll(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	size := deleteBatch
	if c.Has("b") {
		n, err := strconv.ParseInt(c.Value("b"), 10, 32)
		if err != nil {
			return misuse("-b argument must be an int value")
		}
		size = int(n)
	}
	return c.eachPath(ctx, func(ctx context.Context, path string) error { return deleteSubtree(ctx, zk, path, size) })
}

// deleteSubtree deletes a znode and all below it, in transactions of size znodes.
func deleteSubtree(ctx context.Context, zk *client.Client, path string, size int) error {
	if err := checkPath(path); err != nil {
		return err
	}
	paths, err := below(ctx, zk, path)
	if err != nil {
		return err
	}
	slices.Reverse(paths) // leaves first
	if size <= 0 {
		for _, path := range paths {
			if err := zk.Delete(ctx, path, client.AnyVersion); err != nil {
				return err
			}
		}
		return nil
	}
	if err := deleteInBatches(ctx, zk, paths, size); err != nil {
		return &Exit{Code: 1, Message: "Failed to delete some node(s) in the subtree!\n" + sentence(err), Err: err}
	}
	return nil
}

// below returns a znode and its descendants, level by level.
func below(ctx context.Context, zk *client.Client, path string) ([]string, error) {
	paths := []string{path}
	for i := 0; i < len(paths); i++ {
		names, _, err := zk.Children(ctx, paths[i])
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			paths = append(paths, subtree.Join(paths[i], "/"+name))
		}
	}
	return paths, nil
}

// deleteInBatches deletes znodes in the given order, in transactions.
func deleteInBatches(ctx context.Context, zk *client.Client, paths []string, size int) error {
	var ops []client.Op
	bytes := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		_, err := zk.Multi(ctx, ops...)
		ops, bytes = ops[:0], 0
		return err
	}
	for _, path := range paths {
		if len(ops) == size || bytes+len(path) > deleteBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		ops, bytes = append(ops, client.DeleteOp(path, client.AnyVersion)), bytes+len(path)
	}
	return flush()
}

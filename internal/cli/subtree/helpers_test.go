package subtree_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// patience is long enough for busy machines.
const patience = 60 * time.Second

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// run starts a server that supports every kind of znode.
func run(t *testing.T) (*zktest.Server, *client.Client) {
	t.Helper()
	zs := zktest.Run(t, zktest.WithConfig(func(c *server.Config) { c.Znodes.ExtendedTypes = true }))
	return zs, zs.Client(t)
}

// kinds fills /app with many kinds of znode, and returns their number without the
// ephemeral one.
func kinds(t *testing.T, c *client.Client) int {
	t.Helper()
	ctx := background(t)
	reader := client.ACL{Perms: client.PermRead, ID: client.ID{Scheme: "digest", ID: "u:hash"}}
	all := client.WorldACL(client.PermAll)
	for _, n := range []struct {
		path string
		data []byte
		opts []client.CreateOption
	}{
		{"/app", nil, nil},
		{"/app/a", []byte("text"), nil},
		{"/app/a-b", []byte{}, nil},
		{"/app/a/sub", []byte("below a, before a-b"), nil},
		{"/app/acl", []byte("secret"), []client.CreateOption{client.WithACL(append(all, reader)...)}},
		{"/app/big", bytes.Repeat([]byte("0123456789"), 80_000), nil},
		{"/app/binary", []byte{0, 1, 0xff, 0xfe, '\n'}, nil},
		{"/app/box", nil, []client.CreateOption{client.Container}},
		{"/app/lines", []byte("  one\n\ttwo  \n\nthree: \"four\"\r\n"), nil},
		{"/app/live", []byte("me"), []client.CreateOption{client.Ephemeral}},
		{"/app/number", []byte("0123"), nil},
		{"/app/q", nil, nil},
		{"/app/q/n-", []byte("1"), []client.CreateOption{client.Sequential}},
		{"/app/q/n-", []byte("2"), []client.CreateOption{client.Sequential}},
		{"/app/short", []byte("x"), []client.CreateOption{client.WithTTL(time.Hour)}},
		{"/app/ünïcode ☃", []byte("☃"), nil},
	} {
		if _, err := c.Create(ctx, n.path, n.data, n.opts...); err != nil {
			t.Fatal(err)
		}
	}
	return 15
}

// same fails the test unless two subtrees have the same data and ACLs, apart from
// ephemeral znodes.
func same(t *testing.T, a, b subtree.Source) int {
	t.Helper()
	n, err := subtree.Diff(background(t), a, b, subtree.DiffOptions{NoEphemerals: true}, func(d *subtree.Difference) error {
		t.Errorf("%v", d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func walk(c *client.Client, root string) subtree.Source {
	return subtree.Walk(c, root, subtree.WalkOptions{})
}

// paths returns the paths of a source.
func paths(t *testing.T, s subtree.Source) []string {
	t.Helper()
	var list []string
	for n, err := range s(background(t)) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n.Path)
	}
	return list
}

// export returns the output of Export.
func export(t *testing.T, src subtree.Source, o subtree.ExportOptions) string {
	t.Helper()
	var b strings.Builder
	if _, err := subtree.Export(background(t), &b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wide creates a parent with n children.
func wide(t *testing.T, c *client.Client, parent string, n int) {
	t.Helper()
	ctx := background(t)
	ops := []client.Op{client.CreateOp(parent, nil)}
	for i := range n {
		ops = append(ops, client.CreateOp(fmt.Sprintf("%s/%06d", parent, i), []byte("x")))
	}
	if _, err := c.Multi(ctx, ops...); err != nil {
		t.Fatal(err)
	}
}

package client_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestMulti(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		zs.Set("/a", "1")
		results, err := c.Txn().Check("/a", 0).Create("/b", []byte("b")).Create("/c-", nil, client.Sequential).
			Set("/a", []byte("2"), 0).Delete("/b", 0).Create("/d", nil, client.Container).Commit(ctx)
		must(t, err)
		if len(results) != 6 || results[1].Path != "/b" || results[2].Path != "/c-0000000002" || results[3].Stat.Version != 1 {
			t.Errorf("results %+v", results)
		}
		results, err = c.Multi(ctx, client.SetOp("/a", []byte("3"), 1), client.CheckOp("/a", 9), client.DeleteOp("/a", 0))
		var failed *client.MultiError
		if !errors.As(err, &failed) || failed.Index != 1 || !errors.Is(err, client.ErrBadVersion) || errors.Is(err, client.ErrUnknownOutcome) {
			t.Fatalf("a transaction that fails: %v", err)
		}
		for i, want := range []error{client.ErrRuntimeInconsistency, client.ErrBadVersion, client.ErrRuntimeInconsistency} {
			if !errors.Is(results[i].Err, want) {
				t.Errorf("result %d: %v", i, results[i].Err)
			}
		}
		if zs.Get("/a") != "2" {
			t.Error("only a part was executed")
		}
		if results, err := c.Multi(ctx); err != nil || len(results) != 0 {
			t.Errorf("an empty transaction: %v, %v", results, err)
		}
		if _, err := c.Multi(ctx, client.Op{}); !errors.Is(err, client.ErrBadArguments) {
			t.Errorf("a zero Op: %v", err)
		}
		zs.LoseReply(zktest.Match{Op: proto.OpMulti})
		if _, err := c.Multi(ctx, client.DeleteOp("/a", client.AnyVersion)); !errors.Is(err, client.ErrUnknownOutcome) {
			t.Errorf("reply lost: %v", err)
		}
	})
}

func TestMultiRead(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		zs.Set("/a/b", "1")
		results, err := c.MultiRead(bounded(t), client.GetOp("/a/b"), client.GetOp("/none"), client.ChildrenOp("/a"))
		must(t, err)
		if string(results[0].Data) != "1" || !errors.Is(results[1].Err, client.ErrNoNode) || !slices.Equal(results[2].Children, []string{"b"}) {
			t.Errorf("results %+v", results)
		}
	})
}

func TestCreateOptions(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		acl := client.WorldACL(client.PermRead | client.PermCreate | client.PermDelete)
		c := connect(t, zs, client.WithACLProvider(func(path string) []client.ACL {
			if path == "/p/q" {
				return acl
			}
			return nil
		}))
		ctx := bounded(t)
		_, err := c.Create(ctx, "/p/q/r", nil, client.CreateParents)
		must(t, err)
		for path, want := range map[string][]client.ACL{"/p": client.WorldACL(client.PermAll), "/p/q": acl} {
			if got, _, err := c.GetACL(ctx, path); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s has the ACL %v, %v", path, got, err)
			}
		}
		_, err = c.Create(ctx, "/ttl", nil, client.WithTTL(time.Minute))
		must(t, err)
		_, err = c.Create(ctx, "/box/x", nil, client.CreateParentContainers)
		must(t, err)
		must(t, c.Delete(ctx, "/box/x", 0))
		time.Sleep(5 * time.Minute)
		zs.WaitGone("/ttl")
		zs.WaitGone("/box")
		ctx = bounded(t) // the previous context has timed out
		for _, bad := range [][]client.CreateOption{
			{client.Ephemeral, client.Container},
			{client.Ephemeral, client.WithTTL(time.Second)},
			{client.WithTTL(time.Microsecond)},
			{client.Sequential | client.Container},
		} {
			if _, err := c.Create(ctx, "/bad", nil, bad...); !errors.Is(err, client.ErrBadArguments) {
				t.Errorf("options %v: %v", bad, err)
			}
		}
		must(t, c.EnsurePath(ctx, "/x/y/z"))
		must(t, c.EnsurePath(ctx, "/x/y/z"))
		must(t, c.EnsurePath(ctx, "/"))
	})
}

func TestCompression(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		data := bytes.Repeat([]byte("abc"), 1000)
		_, err := c.Create(ctx, "/a", data, client.Compressed)
		must(t, err)
		if got, stat, err := c.Get(ctx, "/a", client.Compressed); err != nil || !bytes.Equal(got, data) || int(stat.DataLength) >= len(data) {
			t.Errorf("%d bytes, stored as %d, %v", len(got), stat.DataLength, err)
		}
		_, err = c.Set(ctx, "/a", []byte("plain"), client.AnyVersion)
		must(t, err)
		if _, _, w, err := c.GetW(ctx, "/a", client.Compressed); err == nil || w != nil {
			t.Error("plain data was decompressed")
		}
		noWatches(t, zs, c)
		small := connect(t, zs, client.WithMaxReply(1000))
		_, err = c.Set(ctx, "/a", make([]byte, 100_000), client.AnyVersion, client.Compressed)
		must(t, err)
		if _, _, err := small.Get(ctx, "/a", client.Compressed); err == nil {
			t.Error("a bomb went off")
		}
	})
}

func TestDeleteAll(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		zs.Seed(map[string]string{"/a/b/c/d": "", "/a/b/e": "", "/a/f": ""})
		zs.LoseReply(zktest.Match{Op: proto.OpDelete, Path: "/a/b/c/d"})
		must(t, c.DeleteChildren(ctx, "/a"))
		if n := zs.Children("/a"); len(n) != 0 {
			t.Errorf("left: %q", n)
		}
		must(t, c.DeleteAll(ctx, "/a"))
		must(t, c.DeleteAll(ctx, "/a"))
		if zs.Exists("/a") {
			t.Error("it is there")
		}
	})
}

package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

// TestEveryEventOnce tests that WithEvents delivers each event once and in the
// server's order, however many watches it is for, and before it is in a watch's
// channel.
func TestEveryEventOnce(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		var told []string
		all := make(chan client.Event, 16)
		c := connect(t, zs, client.WithEvents(func(e client.Event) { all <- e })).Namespace("/app")
		ctx := bounded(t)
		zs.Set("/app/a", "1")
		_, _, _, err := c.GetW(ctx, "/a")
		must(t, err)
		_, _, _, err = c.ExistsW(ctx, "/a")
		must(t, err)
		_, err = c.WatchPersistent(ctx, "/a")
		must(t, err)
		w, err := c.WatchRecursive(ctx, "/a")
		must(t, err)
		zs.Set("/app/a", "2")
		if _, ok := await(t, w.Events(), "an event"); !ok || len(all) != 1 {
			t.Errorf("%d events were delivered before the watch had one", len(all))
		}
		zs.Set("/app/a/b", "1")
		zs.Delete("/app/a/b")
		must(t, c.Sync(ctx, "/"))
		zxid := int64(0)
		for len(all) > 0 {
			e := <-all
			told = append(told, strings.TrimPrefix(e.Type.String(), "Node")+" "+e.Path)
			if e.Zxid < zxid {
				t.Errorf("%v is older than the previous event", e)
			}
			zxid = e.Zxid
		}
		want := []string{
			"DataChanged /app/a", "Created /app/a/b", "ChildrenChanged /app/a", "Deleted /app/a/b", "ChildrenChanged /app/a",
		}
		if !slices.Equal(told, want) {
			t.Errorf("events %q, want %q", told, want)
		}
	})
}

// TestAwait tests waiting for a connection after a WithLazy connect.
func TestAwait(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs, client.WithLazy())
		must(t, c.Await(bounded(t)))
		if c.Session().ID == 0 {
			t.Error("no session")
		}
		must(t, c.Close())
		if err := c.Await(bounded(t)); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

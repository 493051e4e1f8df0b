package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// TestEverythingInABubble exercises time and faults while client and server are in fake
// time. Afterwards time should still advance, and the client should be connected or
// reconnect.
func TestEverythingInABubble(t *testing.T) {
	t.Parallel()
	any := zktest.Match{Op: proto.OpGetData}
	get := func(t *testing.T, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, _ = c.Get(ctx, "/") // it may fail, because we inject faults
	}
	for name, do := range map[string]func(t *testing.T, zs *zktest.Server, c *client.Client){
		"advance":    func(_ *testing.T, zs *zktest.Server, _ *client.Client) { zs.Advance(time.Hour) },
		"expire":     func(_ *testing.T, zs *zktest.Server, c *client.Client) { zs.ExpireSession(c.Session().ID) },
		"drop":       func(_ *testing.T, zs *zktest.Server, c *client.Client) { zs.DropConnection(c.Session().ID) },
		"drop all":   func(_ *testing.T, zs *zktest.Server, _ *client.Client) { zs.DropConnections() },
		"fail":       func(t *testing.T, zs *zktest.Server, c *client.Client) { zs.FailNext(any, proto.ErrNoAuth); get(t, c) },
		"lose":       func(t *testing.T, zs *zktest.Server, c *client.Client) { zs.LoseNext(any); get(t, c) },
		"lose reply": func(t *testing.T, zs *zktest.Server, c *client.Client) { zs.LoseReply(any); get(t, c) },
		"delay":      func(t *testing.T, zs *zktest.Server, c *client.Client) { zs.DelayNext(any, time.Second); get(t, c) },
		"record":     func(t *testing.T, zs *zktest.Server, c *client.Client) { zs.Record(any); get(t, c) },
		"kill": func(_ *testing.T, zs *zktest.Server, _ *client.Client) {
			zs.Kill()
			time.Sleep(time.Minute)
			zs.Restart()
		},
		"full disk":    func(t *testing.T, zs *zktest.Server, c *client.Client) { spoiled(t, zs, c, zs.FillDisk) },
		"failing disk": func(t *testing.T, zs *zktest.Server, c *client.Client) { spoiled(t, zs, c, zs.FailFsync) },
		"pause": func(_ *testing.T, zs *zktest.Server, _ *client.Client) {
			zs.Pause()
			time.Sleep(time.Minute)
			zs.Resume()
		},
		"reset": func(_ *testing.T, zs *zktest.Server, _ *client.Client) { zs.Reset(zs.Snapshot()) },
		"fail all": func(t *testing.T, zs *zktest.Server, c *client.Client) {
			defer zs.FailAll(any, proto.ErrSystemError).Cancel()
			get(t, c)
		},
		"hang": func(_ *testing.T, zs *zktest.Server, c *client.Client) {
			resume := zs.HangConnection(c.Session().ID)
			time.Sleep(time.Minute)
			resume()
		},
		"refuse": func(_ *testing.T, zs *zktest.Server, _ *client.Client) {
			accept := zs.RefuseConnections()
			zs.DropConnections()
			time.Sleep(time.Second)
			accept()
		},
		"slow": func(t *testing.T, zs *zktest.Server, c *client.Client) {
			restore := zs.SlowConnections(time.Second, 1000)
			get(t, c)
			restore()
		},
		"read-only": func(_ *testing.T, zs *zktest.Server, _ *client.Client) {
			back := zs.ReadOnly()
			time.Sleep(time.Second)
			back()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				zs := zktest.Run(t, zktest.OnDisk())
				c := zs.Client(t)
				do(t, zs, c)
				time.Sleep(time.Hour)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				for {
					if _, err := c.Create(ctx, "/done", nil); err == nil || ctx.Err() != nil {
						break
					}
					time.Sleep(time.Second)
				}
				if !zs.Exists("/done") {
					t.Error("the client has not reconnected")
				}
			})
		})
	}
}

// spoiled makes the disk fail at a write, and heals it.
func spoiled(t *testing.T, zs *zktest.Server, c *client.Client, spoil func() func()) {
	t.Helper()
	heal := spoil()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Create(ctx, "/never", nil); err == nil {
		t.Error("a server without a disk acknowledges")
	}
	heal()
	zs.Kill()
	zs.Restart()
}

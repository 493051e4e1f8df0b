package client_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3)
	cfg, w, err := cl.Client(t).Namespace("/x").ConfigW(bounded(t))
	must(t, err)
	if cfg.Text == "" || len(cfg.Clients) != 0 {
		t.Errorf("config %+v", cfg)
	}
	must(t, w.Remove(bounded(t)))
}

func TestServersOfTheConfigAreUsed(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		var mu sync.Mutex
		var dialed []string
		dial := client.WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
			mu.Lock()
			dialed = append(dialed, addr)
			mu.Unlock()
			return zs.Dial()
		})
		c, err := client.Connect(bounded(t), "seed:1/chroot", dial, client.WithConfigTracking())
		must(t, err)
		defer c.Close()
		states := c.Subscribe()
		defer states.Close()
		used := func() string {
			zs.DropConnections()
			until(t, states, client.StateReconnected)
			mu.Lock()
			defer mu.Unlock()
			return dialed[len(dialed)-1]
		}
		for _, server := range []string{"one:2181", "two:2181"} {
			zs.WaitForWatch(client.ConfigPath)
			zs.Set(client.ConfigPath, "server.1=x:2888:3888:participant;"+server+"\nversion=100000000")
			zs.WaitForWatch(client.ConfigPath) // the client has read the config and watches it again
			must(t, c.Sync(bounded(t), "/"))
			if got := used(); got != server {
				t.Errorf("connected to %s, want %s", got, server)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(dialed[:1], []string{"seed:1"}) {
			t.Errorf("dialed %q", dialed)
		}
	})
}

// TestServerByServer tests that a client keeps its session while the servers are
// killed and restarted one after another.
func TestServerByServer(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3, zktest.OnDisk())
	c := cl.Client(t)
	ctx := bounded(t)
	id := c.Session().ID
	_, err := c.Create(ctx, "/e", nil, client.Ephemeral)
	must(t, err)
	for server := 1; server <= 3; server++ {
		cl.Kill(server)
		_, err := c.Set(ctx, "/e", []byte{byte(server)}, client.AnyVersion, client.Idempotent)
		must(t, err)
		cl.Restart(server)
	}
	if c.Session().ID != id {
		t.Error("another session")
	}
}

package server

import (
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// quiet is a logger that discards everything.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// A third-party client works over an in-process connection.
func TestGoZookeeperOverDial(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c, events, err := zk.Connect([]string{"127.0.0.1:2181"}, 20*time.Second, zk.WithLogger(quiet{}),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return s.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	acl := zk.WorldACL(zk.PermAll)
	if _, err := c.Create("/a", []byte("1"), 0, acl); err != nil {
		t.Fatal(err)
	}
	_, _, watch, err := c.GetW("/a")
	if err != nil {
		t.Fatal(err)
	}
	if path, err := c.CreateProtectedEphemeralSequential("/a/lock-", nil, acl); err != nil {
		t.Fatal(path, err)
	}
	if _, err := c.Set("/a", []byte("2"), 0); err != nil {
		t.Fatal(err)
	}
	if e := <-watch; e.Type != zk.EventNodeDataChanged || e.Path != "/a" {
		t.Errorf("event %+v", e)
	}
	if data, st, err := c.Get("/a"); err != nil || string(data) != "2" || st.Version != 1 {
		t.Errorf("%q %+v %v", data, st, err)
	}
	if _, err := c.Multi(&zk.SetDataRequest{Path: "/a", Version: 7}); err != zk.ErrBadVersion {
		t.Errorf("multi: %v", err)
	}
	if err := c.AddAuth("digest", []byte("u:p")); err != nil {
		t.Error(err)
	}
	if kids, _, err := c.Children("/a"); err != nil || len(kids) != 1 {
		t.Errorf("%q %v", kids, err)
	}
}

// The same over TCP, on the port of ClientAddr.
func TestGoZookeeperOverTCP(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.ClientAddr = "127.0.0.1:0" })
	c, _, err := zk.Connect([]string{s.ClientAddr()}, 20*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create("/a", []byte("1"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if len(s.ClientAddrs()) != 1 {
		t.Errorf("addresses %q", s.ClientAddrs())
	}
}

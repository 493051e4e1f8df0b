// Package gozk connects go-zookeeper's client to a server of zktest.
//
//	conn := gozk.Connect(t, zktest.Run(t))
//
// Only tests that import it link that client. It imports zktest.
package gozk

import (
	"context"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/server/zktest"
)

const (
	timeout  = 30 * time.Second // of the session
	patience = 30 * time.Second // for the connection
)

// target is a *zktest.Server or a *zktest.Cluster.
type target interface {
	Dialer() func(network, address string, timeout time.Duration) (net.Conn, error)
}

// Connect returns a connection that has its session, and closes it when the test ends. It
// needs no port. target is a [zktest.Server] or a [zktest.Cluster].
func Connect(t zktest.TB, target target) *zk.Conn {
	t.Helper()
	hosts := []string{"127.0.0.1"} // needs no name resolution
	if cluster, is := target.(*zktest.Cluster); is {
		hosts = cluster.Hosts()
	}
	conn, events, err := zk.Connect(hosts, timeout, zk.WithDialer(target.Dialer()), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-ctx.Done():
			t.Fatalf("connect: no session within %v", patience)
		}
	}
}

// quiet discards the client's log, because the client may log after the end of the test.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

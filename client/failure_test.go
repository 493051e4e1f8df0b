package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
)

// TestConnectFailures tests that the callback, ConnectFailures and the error of
// Connect report each server's cause.
func TestConnectFailures(t *testing.T) {
	t.Parallel()
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	})
	defer accepting.Wait()
	defer closing.Close()
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	servers := []string{down.Addr().String(), "nosuch.invalid:2181", closing.Addr().String()}
	told := make(chan []client.ConnectFailure, 1)
	zk, err := client.Connect(t.Context(), strings.Join(servers, ","), client.WithLazy(), client.WithConnectFailures(func(list []client.ConnectFailure) {
		select {
		case told <- list:
		default:
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close() //nolint:errcheck // there is no session
	for _, list := range [][]client.ConnectFailure{<-told, zk.ConnectFailures()} {
		if len(list) != len(servers) {
			t.Fatalf("%v", list)
		}
		for i, f := range list {
			if f.Server != servers[i] {
				t.Errorf("failure %d is of %s, want %s", i, f.Server, servers[i])
			}
		}
		if !errors.Is(list[0], syscall.ECONNREFUSED) {
			t.Errorf("a port without a listener: %v", list[0])
		}
		var dns *net.DNSError
		if !errors.As(list[1], &dns) || list[1].Addr != "" {
			t.Errorf("a name that does not exist: %v", list[1])
		}
		if errors.Is(list[2], syscall.ECONNREFUSED) {
			t.Errorf("a server that closes the connection: %v", list[2])
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = zk.Await(ctx)
	for _, server := range servers {
		host, _, _ := strings.Cut(server, ":")
		if err == nil || !strings.Contains(err.Error(), host) {
			t.Errorf("%v does not name %s", err, server)
		}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v does not match its causes", err)
	}
}

package lock_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// on returns a client and its connection.
func on(t *testing.T, zs *zktest.Server) (recipes.Conn, *client.Client) {
	c := zs.Client(t)
	return recipes.On(c), c
}

// severed returns a client's connection, and a function that cuts it off from the
// server until resume is called.
func severed(t *testing.T, zs *zktest.Server) (conn recipes.Conn, cut func() (resume func())) {
	var off atomic.Bool
	c := zs.Client(t, client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		if off.Load() {
			return nil, errors.New("cut off")
		}
		return zs.Dial()
	}))
	return recipes.On(c), func() func() {
		off.Store(true)
		resume := zs.HangConnection(c.Session().ID)
		return func() {
			off.Store(false)
			resume()
		}
	}
}

// Command zk competes for the locks of recipes/lock, on any server that speaks ZooKeeper's
// protocol.
package main

import (
	"context"
	"flag"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

// sessionTimeout is long enough for pings to be rare.
const sessionTimeout = 30 * time.Second

// acquirer is the common interface of the locks.
type acquirer interface {
	Acquire(ctx context.Context) (*lock.Lease, error)
}

// kinds create a lock at a path.
var kinds = map[string]func(conn recipes.Conn, path string) load.Lock{
	"mutex":  func(c recipes.Conn, path string) load.Lock { return &zkLock{lock: lock.NewMutex(c, path)} },
	"lease":  func(c recipes.Conn, path string) load.Lock { return &zkLock{lock: lock.NewLeaseLock(c, path)} },
	"simple": func(c recipes.Conn, path string) load.Lock { return &zkLock{lock: lock.NewSimple(c, path)} },
	"parent": func(c recipes.Conn, path string) load.Lock { return &parent{conn: c, dir: path} },
}

func main() {
	releases := flag.Int("releases", 5, "releases of a lock for which a crowd waits")
	dials := map[string]load.Dial{}
	for name := range kinds {
		dials[name] = func(ctx context.Context, addrs []string) (load.Client, error) { return dial(ctx, addrs, name) }
	}
	load.Main(dials, map[string]load.Work{
		"crowd": func(ctx context.Context, dial load.Dial, j load.Job) (load.Result, error) {
			return crowd(ctx, dial, j, *releases)
		},
	})
}

func dial(ctx context.Context, addrs []string, kind string) (load.Client, error) {
	c, err := client.Connect(ctx, strings.Join(addrs, ","), client.WithSessionTimeout(sessionTimeout))
	if err != nil {
		return nil, err
	}
	return &zkClient{c, kind}, nil
}

type zkClient struct {
	*client.Client
	kind string
}

func (c *zkClient) Lock(name string) load.Lock {
	return kinds[c.kind](recipes.On(c.Client), "/"+c.kind+"-"+name)
}

type zkLock struct {
	lock  acquirer
	lease *lock.Lease
}

func (l *zkLock) Acquire(ctx context.Context) (err error) {
	l.lease, err = l.lock.Acquire(ctx)
	return err
}

func (l *zkLock) Release(ctx context.Context) error { return l.lease.Release(ctx) }

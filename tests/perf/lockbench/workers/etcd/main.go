// Command etcd competes for etcd's own lock, concurrency.Mutex of its client. It is a
// separate module, so that no other package needs that client.
package main

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

// ttl is how many seconds a session lasts without keep-alives.
const ttl = 30

func main() { load.Main(map[string]load.Dial{"mutex": dial}, nil) }

func dial(ctx context.Context, addrs []string) (load.Client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 30 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(c, concurrency.WithTTL(ttl), concurrency.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &etcdClient{c, s}, nil
}

type etcdClient struct {
	c *clientv3.Client
	s *concurrency.Session
}

func (c *etcdClient) Lock(name string) load.Lock {
	return etcdLock{concurrency.NewMutex(c.s, "/"+name)}
}

func (c *etcdClient) Close() error { return errors.Join(c.s.Close(), c.c.Close()) }

type etcdLock struct{ m *concurrency.Mutex }

func (l etcdLock) Acquire(ctx context.Context) error { return l.m.Lock(ctx) }
func (l etcdLock) Release(ctx context.Context) error { return l.m.Unlock(ctx) }

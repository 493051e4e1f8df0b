package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/zkgo/zkgo/internal/bench"
)

// work returns the operation that one goroutine repeats. slot numbers the goroutines that
// share connection conn.
type work func(l *load, c *clientv3.Client, conn, slot int) func(ctx context.Context) error

func works() map[string]work {
	return map[string]work{"get": gets, "set": sets, "mixed": mixed, "multi": multis, "create": creates}
}

// newLoad chooses the keys. Like bench, it makes about as many directories as keys in each.
func newLoad(cfg *bench.Config) *load {
	l := &load{cfg: cfg, prefix: fmt.Sprintf("/zkgo-bench/%s-%s/", cfg.Work, strconv.FormatUint(rand.Uint64(), 36))}
	l.meter.prepare(cfg.Conns)
	dirs := int(math.Ceil(math.Sqrt(float64(cfg.Nodes))))
	for i := range cfg.Nodes {
		l.keys = append(l.keys, fmt.Sprintf("%sk%d/%d", l.prefix, i%dirs, i/dirs))
	}
	random := rand.New(rand.NewPCG(cfg.Seed, 1))
	value := make([]byte, cfg.Size) // doesn't compress
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	l.value = string(value)
	return l
}

func (l *load) random(conn, slot int) *rand.Rand {
	return rand.New(rand.NewPCG(l.cfg.Seed, uint64(conn*l.cfg.Window+slot)+2))
}

func (l *load) key(random *rand.Rand) string { return l.keys[random.IntN(len(l.keys))] }

func (l *load) get(ctx context.Context, c *clientv3.Client, key string) error {
	got, err := c.Get(ctx, key, clientv3.WithSerializable())
	if err == nil && len(got.Kvs) == 0 {
		err = errors.New("a key is not there")
	}
	return err
}

func gets(l *load, c *clientv3.Client, conn, slot int) func(ctx context.Context) error {
	random := l.random(conn, slot)
	return func(ctx context.Context) error { return l.get(ctx, c, l.key(random)) }
}

func sets(l *load, c *clientv3.Client, conn, slot int) func(ctx context.Context) error {
	random := l.random(conn, slot)
	return func(ctx context.Context) error {
		_, err := c.Put(ctx, l.key(random), l.value)
		return err
	}
}

func mixed(l *load, c *clientv3.Client, conn, slot int) func(ctx context.Context) error {
	random := l.random(conn, slot)
	return func(ctx context.Context) error {
		if random.Float64() >= l.cfg.Writes {
			return l.get(ctx, c, l.key(random))
		}
		_, err := c.Put(ctx, l.key(random), l.value)
		return err
	}
}

// multis runs transactions without a condition. etcd allows a transaction to put a key
// only once.
func multis(l *load, c *clientv3.Client, conn, slot int) func(ctx context.Context) error {
	random := l.random(conn, slot)
	puts := make([]clientv3.Op, l.cfg.Ops)
	return func(ctx context.Context) error {
		first, step := random.IntN(len(l.keys)), 1+random.IntN(max(1, len(l.keys)/len(puts)-1))
		for i := range puts {
			puts[i] = clientv3.OpPut(l.keys[(first+i*step)%len(l.keys)], l.value)
		}
		_, err := c.Txn(ctx).Then(puts...).Commit()
		return err
	}
}

// creates puts keys that must not exist, which matches create.
func creates(l *load, c *clientv3.Client, conn, slot int) func(ctx context.Context) error {
	n, dir := 0, fmt.Sprintf("%sc%d/%d-", l.prefix, conn, slot)
	return func(ctx context.Context) error {
		n++
		key := dir + strconv.Itoa(n)
		answer, err := c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, l.value)).Commit()
		if err == nil && !answer.Succeeded {
			err = errors.New("a key already exists")
		}
		return err
	}
}

// Command etcd runs the loads of package bench on etcd, as far as etcd has an equivalent:
// get, set, create, mixed and multi. It is a separate module, so that no other package
// needs etcd's client.
//
// A connection is one etcd client, which talks to one server. A window of n is n goroutines
// that share the client, which sends their requests over one HTTP/2 connection. A get is
// serializable, i.e. the server answers from its own state without asking the others,
// because ZooKeeper's reads do the same. We don't use etcd's default, a linearizable read,
// because it costs more.
//
// It prints "begin" and "end" when it begins and ends counting, and then a [bench.Result]
// as JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/zkgo/zkgo/internal/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := flags()
	result, err := run(ctx, cfg)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // there is nothing left for stop to undo
	}
}

// flags parses the command line, with the defaults of bench.Config.
func flags() *bench.Config {
	var c bench.Config
	servers := ""
	flag.StringVar(&c.Work, "work", "get", "get, set, create, mixed or multi")
	flag.StringVar(&servers, "servers", "127.0.0.1:2379", "servers, separated by commas; connections are spread over them in turn")
	flag.IntVar(&c.Conns, "conns", 1, "connections")
	flag.IntVar(&c.Window, "window", 1, "requests in flight on each")
	flag.IntVar(&c.Size, "size", 100, "bytes of a value")
	flag.IntVar(&c.Nodes, "nodes", 1000, "keys that are there for reads and writes")
	flag.IntVar(&c.Ops, "ops", 10, "operations in a multi")
	flag.Float64Var(&c.Writes, "writes", 0.1, "the part of writes in mixed")
	flag.DurationVar(&c.Warmup, "warmup", time.Second/2, "time before counting begins")
	flag.DurationVar(&c.Duration, "duration", 5*time.Second, "time of counting")
	flag.Uint64Var(&c.Seed, "seed", 0, "of the random choices")
	flag.Parse()
	c.Servers = strings.Split(servers, ",")
	return &c
}

// load is one running measurement.
type load struct {
	meter
	cfg     *bench.Config
	clients []*clientv3.Client
	prefix  string // of the run's keys
	keys    []string
	value   string
	over    atomic.Bool // send no new requests
}

// run measures once and then removes its keys.
func run(ctx context.Context, cfg *bench.Config) (*bench.Result, error) {
	work, ok := works()[cfg.Work]
	if !ok {
		return nil, fmt.Errorf("etcd has nothing like %q", cfg.Work)
	}
	l := newLoad(cfg)
	defer l.hangUp()
	if err := l.prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing %s: %w", cfg.Work, err)
	}
	var g errgroup.Group
	for conn, c := range l.clients {
		for slot := range cfg.Window {
			g.Go(func() error { return l.ask(ctx, conn, work(l, c, conn, slot)) })
		}
	}
	g.Go(func() error { return l.clock(ctx) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	_, err := l.clients[0].Delete(ctx, l.prefix, clientv3.WithPrefix())
	return l.result(cfg), err
}

// prepare connects and writes the initial keys.
func (l *load) prepare(ctx context.Context) error {
	for i := range l.cfg.Conns {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{l.cfg.Servers[i%len(l.cfg.Servers)]}, DialTimeout: 30 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		l.clients = append(l.clients, c)
		// A client connects on first use, and we don't want to count that as work.
		if _, err := c.Get(ctx, l.prefix); err != nil {
			return err
		}
	}
	if l.cfg.Work == "create" {
		return nil
	}
	var g errgroup.Group
	g.SetLimit(64)
	for i, key := range l.keys {
		g.Go(func() error {
			_, err := l.clients[i%len(l.clients)].Put(ctx, key, l.value)
			return err
		})
	}
	return g.Wait()
}

func (l *load) hangUp() {
	for _, c := range l.clients {
		_ = c.Close() // all requests have been answered
	}
}

// clock begins and ends the counting.
func (l *load) clock(ctx context.Context) error {
	defer l.over.Store(true)
	if err := sleep(ctx, l.cfg.Warmup); err != nil {
		return err
	}
	fmt.Println("begin")
	l.begin()
	err := sleep(ctx, l.cfg.Duration)
	l.end()
	fmt.Println("end")
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask performs one operation after another until the run is over.
func (l *load) ask(ctx context.Context, conn int, do func(ctx context.Context) error) error {
	for !l.over.Load() && ctx.Err() == nil {
		began := time.Now()
		if err := do(ctx); err != nil {
			l.failure(err)
			continue
		}
		l.done(conn, time.Since(began))
	}
	return ctx.Err()
}

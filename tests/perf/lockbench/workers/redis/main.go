// Command redis competes for locks in Redis as most programs do: with SET NX PX and a
// random value, a script that deletes the key if it still has that value, and, since Redis
// doesn't notify clients of a release, a retry after a pause. RedLock does this with a
// majority of independent servers.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"time"

	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
	"github.com/zkgo/zkgo/tests/perf/lockbench/redis"
)

// length is how long a lock lasts.
const length = 30 * time.Second

// pause is the range of the pause before a retry.
type pause struct{ least, most time.Duration }

func (p pause) draw() time.Duration { return p.least + mrand.N(p.most-p.least) }

func main() {
	usual := pause{50 * time.Millisecond, 250 * time.Millisecond} // redsync's
	load.Main(map[string]load.Dial{
		"poll":    dialer(usual),
		"poll10":  dialer(pause{5 * time.Millisecond, 15 * time.Millisecond}),
		"redlock": dialer(usual),
	}, nil)
}

// dialer returns a Dial that connects to all servers: one, or several for RedLock, which uses the
// simple lock on each server.
func dialer(p pause) load.Dial {
	return func(ctx context.Context, addrs []string) (load.Client, error) {
		c := &redisClient{pause: p}
		for _, a := range addrs {
			conn, err := redis.Dial(ctx, a)
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			c.conns = append(c.conns, conn)
		}
		return c, nil
	}
}

type redisClient struct {
	conns []*redis.Conn
	pause pause
}

func (c *redisClient) Lock(name string) load.Lock { return &redisLock{c: c, key: name} }

func (c *redisClient) Close() error {
	for _, conn := range c.conns {
		conn.Close()
	}
	return nil
}

type redisLock struct {
	c          *redisClient
	key, value string
}

func (l *redisLock) Acquire(ctx context.Context) error {
	for {
		l.value = rand.Text()
		began := time.Now()
		yes, err := l.ask(func(c *redis.Conn) (bool, error) { return c.TryLock(ctx, l.key, l.value, length) })
		if err != nil {
			return err
		}
		// RedLock's allowance for clock drift: a hundredth and two milliseconds.
		if yes > len(l.c.conns)/2 && time.Since(began) < length-length/100-2*time.Millisecond {
			return nil
		}
		if len(l.c.conns) > 1 {
			if err := l.Release(ctx); err != nil {
				return err
			}
		}
		time.Sleep(l.c.pause.draw())
	}
}

func (l *redisLock) Release(ctx context.Context) error {
	_, err := l.ask(func(c *redis.Conn) (bool, error) { return c.Unlock(ctx, l.key, l.value) })
	return err
}

// ask asks all servers concurrently and counts how many agree.
func (l *redisLock) ask(what func(*redis.Conn) (bool, error)) (int, error) {
	type answer struct {
		yes bool
		err error
	}
	answers := make(chan answer, len(l.c.conns))
	for _, c := range l.c.conns {
		go func() {
			yes, err := what(c)
			answers <- answer{yes, err}
		}()
	}
	n := 0
	for range l.c.conns {
		a := <-answers
		if a.err != nil {
			return 0, a.err
		}
		if a.yes {
			n++
		}
	}
	return n, nil
}

package config_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
	"github.com/zkgo/zkgo/recipes/config"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type settings struct{ Limit int }

func TestLastGoodValueIsKept(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := config.Watch(recipes.On(zs.Client(t)), "/config", config.JSON[settings])
		type seen struct {
			limit int
			err   error
		}
		all := make(chan seen, 20)
		go func() {
			for s, err := range c.Changes(ctx) {
				all <- seen{s.Limit, err}
			}
			close(all)
		}()
		expect := func(limit int, want error) {
			t.Helper()
			got := <-all
			if got.limit != limit || !errors.Is(got.err, want) {
				t.Errorf("seen %d, %v; not %d, %v", got.limit, got.err, limit, want)
			}
			if s, _ := c.Get(); s.Limit != limit || !errors.Is(c.Err(), want) {
				t.Errorf("get %d, %v; not %d, %v", s.Limit, c.Err(), limit, want)
			}
		}
		expect(0, config.ErrMissing)
		writer := zs.Client(t)
		must.Get(writer.Create(ctx, "/config", []byte(`{"Limit":1}`)))(t)
		expect(1, nil)
		must.Get(writer.Set(ctx, "/config", []byte(`{"Limit":`), client.AnyVersion))(t)
		expect(1, config.ErrRefused)
		must.Get(writer.Set(ctx, "/config", []byte(`{"Limit":2}`), client.AnyVersion))(t)
		expect(2, nil)
		zs.Delete("/config")
		expect(2, config.ErrMissing)
		c.Close()
		if last := <-all; last.limit != 2 || last.err == nil {
			t.Errorf("last %v", last)
		}
		if s, there := c.Get(); !there || s.Limit != 2 {
			t.Error("the last good value is gone")
		}
		synctest.Wait()
		if w := zs.Watches(); len(w) != 0 {
			t.Errorf("watches are left: %v", w)
		}
	})
}

func TestWaitErrorDescribesTheZnode(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Set("/config", "junk")
		c := config.Watch(recipes.On(zs.Client(t)), "/config", config.JSON[settings])
		defer c.Close()
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.Wait(short); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, config.ErrRefused) {
			t.Errorf("wait: %v", err)
		}
		zs.Set("/config", `{"Limit":3}`)
		s := must.Get(c.Wait(rig.Within(t)))(t)
		if s.Limit != 3 {
			t.Errorf("limit %d", s.Limit)
		}
	})
}

func TestConfigAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, func(e *steps.Env) { e.Server.Set("/config", `{"Limit":1}`) }, func(e *steps.Env) {
		c := config.Watch(e.Conn, "/config", config.JSON[settings])
		if _, err := c.Wait(e.Ctx); err != nil && !e.Canceled() {
			e.Errorf("wait: %v", err)
		}
		e.Server.Set("/config", `{"Limit":2}`)
		time.Sleep(time.Minute)
		if s, _ := c.Get(); s.Limit != 2 || c.Err() != nil {
			e.Errorf("limit %d, %v", s.Limit, c.Err())
		}
		c.Close()
		time.Sleep(5 * time.Second) // for a delayed request of a session that has just expired
		synctest.Wait()
		if w := e.Server.Watches(); len(w) != 0 {
			e.Errorf("watches are left: %v", w)
		}
	})
}

// We should not report a znode as missing before we have read it. After Close, Err should
// report that we no longer follow the znode, and the last value should remain.
func TestErrBeforeAndAfter(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Set("/config", `{"Limit":3}`)
		zs.DelayNext(zktest.Match{Op: proto.OpGetData, Path: "/config"}, time.Second)
		c := config.Watch(recipes.On(zs.Client(t)), "/config", config.JSON[settings])
		synctest.Wait()
		if _, loaded := c.Get(); loaded || c.Err() != nil {
			t.Errorf("before: %v", c.Err())
		}
		must.Get(c.Wait(rig.Within(t)))(t)
		c.Close()
		if s, loaded := c.Get(); s.Limit != 3 || !loaded || !errors.Is(c.Err(), cache.ErrCacheClosed) {
			t.Errorf("after: %v, %v", s, c.Err())
		}
	})
}

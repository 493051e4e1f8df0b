package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/queue"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

// kind is a kind of queue with claims, as the step tests need it.
type kind struct {
	open func(conn recipes.Conn) taker
	put  func(ctx context.Context, q taker) error
}

var kinds = map[string]kind{
	"queue": {
		func(conn recipes.Conn) taker { return queue.New(conn, "/d/q") },
		func(ctx context.Context, q taker) error { return q.(*queue.Queue).Put(ctx, []byte("x")) },
	},
	"priority": {
		func(conn recipes.Conn) taker { return queue.NewPriority(conn, "/d/q") },
		func(ctx context.Context, q taker) error { return q.(*queue.Priority).Put(ctx, 7, []byte("x")) },
	},
	"delay": {
		func(conn recipes.Conn) taker { return queue.NewDelay(conn, "/d/q") },
		func(ctx context.Context, q taker) error {
			return q.(*queue.Delay).Put(ctx, time.Now().Add(30*time.Second), []byte("x"))
		},
	},
	"id": {
		func(conn recipes.Conn) taker { return queue.NewID(conn, "/d/q") },
		func(ctx context.Context, q taker) error { return q.(*queue.ID).Put(ctx, "id", []byte("x")) },
	},
}

func TestQueuesAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps.Each(t, nil, func(e *steps.Env) { queueAtStep(e, k) })
		})
	}
}

// queueAtStep puts an item and claims it. Whatever fails, we should neither lose nor
// duplicate the item.
func queueAtStep(e *steps.Env, k kind) {
	q := k.open(e.Conn)
	err := k.put(e.Ctx, q)
	unknown := errors.Is(err, client.ErrUnknownOutcome)
	if err != nil && !unknown && !e.Canceled() {
		e.Fatalf("put: %v", err)
	}
	acknowledged := false
	if err == nil {
		acknowledged = consume(e, q)
	}
	time.Sleep(time.Minute) // delayed items are due, and abandoned ones are gone
	left := drain(e.T, k.open(recipes.On(e.Other)))
	if err == nil && !acknowledged && left == "" || acknowledged && left != "" || left != "" && left != "x" {
		e.Errorf("put: %v, acknowledged: %v, and %q is left", err, acknowledged, left)
	}
	nothingLeft(e, "/d/q")
}

// consume claims an item and acknowledges it. It reports whether the item is gone.
func consume(e *steps.Env, q taker) bool {
	item, err := q.Take(e.Ctx)
	if err != nil {
		if !e.Canceled() {
			e.Errorf("take: %v", err)
		}
		return false
	}
	err = item.Ack(e.Ctx)
	time.Sleep(time.Second) // an abandoned request may still be executed
	lost, unknown := errors.Is(err, queue.ErrLost), errors.Is(err, client.ErrUnknownOutcome)
	there := e.Server.Exists(item.Path())
	switch {
	case err == nil && there:
		e.Error("acknowledged, but there")
	case lost && !unknown && !there:
		e.Error("lost, but gone")
	case err != nil && !lost && !e.Canceled():
		e.Errorf("ack: %v", err)
	}
	if err != nil && !lost {
		_ = item.Return(e.Bounded())
	}
	return !there
}

// nothingLeft fails if there are items, claims or watches.
func nothingLeft(e *steps.Env, path string) {
	e.Helper()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	items := 0
	if e.Server.Exists(path) {
		items = len(e.Server.Children(path))
	}
	if claims, watches := e.Server.Ephemerals(), e.Server.Watches(); items != 0 || len(claims) != 0 || len(watches) != 0 {
		e.Errorf("left: %d items, claims %v, watches %v", items, claims, watches)
	}
}

// Remove should remove all items with an id, each once, and no others.
func TestRemoveAtEveryStep(t *testing.T) {
	t.Parallel()
	before := func(e *steps.Env) {
		q := queue.NewID(recipes.On(e.Other), "/d/q")
		for _, id := range []string{"a", "b", "a"} {
			must.Do(e.T, q.Put(e.Bounded(), id, []byte(id)))
		}
	}
	steps.Each(t, before, func(e *steps.Env) {
		removed, err := queue.NewID(e.Conn, "/d/q").Remove(e.Ctx, "a")
		if err != nil && !e.Canceled() {
			e.Errorf("remove: %v", err)
		}
		time.Sleep(5 * time.Second)
		left := drain(e.T, queue.NewID(recipes.On(e.Other), "/d/q"))
		switch {
		case removed > 2, left == "", e.Fault == steps.None && removed != 2:
			e.Errorf("%d removed, %q left", removed, left)
		case err == nil && left != "b":
			e.Errorf("removed, but %q is left", left)
		}
		nothingLeft(e, "/d/q")
	})
}

// At most one client should get an item of a Simple queue. If the outcome is unknown, the
// error should say so.
func TestSimpleAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		q, other := queue.NewSimple(e.Conn, "/d/q"), queue.NewSimple(recipes.On(e.Other), "/d/q")
		err := q.Offer(e.Ctx, []byte("x"))
		if err != nil && !errors.Is(err, client.ErrUnknownOutcome) && !e.Canceled() {
			e.Fatalf("offer: %v", err)
		}
		time.Sleep(time.Second) // an abandoned request may still be executed
		if err == nil {
			data, err := q.Peek(e.Ctx)
			if err == nil && string(data) != "x" || err != nil && !e.Canceled() {
				e.Errorf("peek: %q, %v", data, err)
			}
			data, taken := q.Take(e.Ctx)
			time.Sleep(time.Second)
			unknown := errors.Is(taken, client.ErrUnknownOutcome)
			switch left, lerr := other.Peek(e.Bounded()); {
			case taken != nil && !unknown && !e.Canceled():
				e.Errorf("take: %v", taken)
			case (taken == nil || unknown) && string(data) != "x":
				e.Errorf("took %q, %v", data, taken)
			case taken == nil && !errors.Is(lerr, queue.ErrEmpty):
				e.Errorf("the item was removed, but there is %q, %v", left, lerr)
			case taken != nil && !unknown && string(left) != "x":
				e.Errorf("the item was not removed (%v), but there is %q, %v", taken, left, lerr)
			}
		}
		if data, err := other.Poll(e.Bounded()); err != nil && !errors.Is(err, queue.ErrEmpty) || err == nil && string(data) != "x" {
			e.Errorf("poll: %q, %v", data, err)
		}
		nothingLeft(e, "/d/q")
	})
}

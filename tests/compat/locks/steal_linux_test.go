package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// waiting is a place in the queue of a mutex.
type waiting struct {
	path string
	seq  int
	data string
	stat client.Stat
}

// queue returns the queue of a mutex, in order.
func (r *run) queue(ctx context.Context, path string) ([]waiting, error) {
	names, _, err := r.client.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	var all []waiting
	for _, name := range names {
		seq, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
		if err != nil {
			return nil, err
		}
		data, stat, err := r.client.Get(ctx, path+"/"+name)
		if errors.Is(err, client.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, waiting{path + "/" + name, seq, string(data), stat})
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.seq, b.seq) })
	return all, nil
}

// steal replaces the znode of a Go worker that waits for a mutex with a znode of the same
// name in the test's session. The worker should not mistake it for its own, and should
// queue again.
func (r *run) steal(path string) {
	r.t.Helper()
	stolen := r.take(path)
	taken := func() bool {
		r.register.mu.Lock()
		defer r.register.mu.Unlock()
		return slices.ContainsFunc(r.register.events, func(e event) bool { return e.kind == entered && e.who.path == stolen.path })
	}
	again := func() bool {
		all, err := r.queue(r.ctx, path)
		if err != nil || len(all) == 0 || all[0].path != stolen.path {
			return false
		}
		// Both of the worker's threads wait, after a znode that no worker owns.
		n := 0
		for _, w := range all {
			if w.stat.EphemeralOwner == stolen.stat.EphemeralOwner {
				n++
			}
		}
		return n == 2
	}
	err := wait.For(wait.Patience, "it waits", func() (bool, error) { return taken() || again(), context.Cause(r.ctx) })
	if err != nil {
		r.fatal("the worker whose %s was stolen does not wait again: %v", stolen.path, err)
	}
	if taken() {
		r.t.Errorf("a worker in Go has the lock by %s, which belongs to another session", stolen.path)
	} else {
		r.done["steal"]++
	}
	if err := r.client.Delete(r.ctx, stolen.path, client.AnyVersion); err != nil && !errors.Is(err, client.ErrNoNode) {
		r.fatal("%v", err)
	}
}

// take replaces the znode of the last Go worker that waits in the queue. The test holds the
// mutex during that time, so that the worker can't acquire it by its own znode first.
func (r *run) take(path string) (stolen waiting) {
	r.t.Helper()
	lease, err := lock.NewMutex(recipes.On(r.client), path, lock.WithData([]byte("test"))).Acquire(r.ctx)
	if err != nil {
		r.fatal("acquiring %s: %v", path, err)
	}
	err = wait.For(wait.Patience, "one waits", func() (bool, error) {
		all, err := r.queue(r.ctx, path)
		if err != nil {
			return false, context.Cause(r.ctx)
		}
		for i := len(all) - 1; i > 0; i-- {
			if !strings.HasPrefix(all[i].data, "go") {
				continue
			}
			stolen = all[i]
			_, err := r.client.Multi(r.ctx, client.DeleteOp(stolen.path, stolen.stat.Version),
				client.CreateOp(stolen.path, []byte("stolen"), client.Ephemeral))
			return err == nil, context.Cause(r.ctx)
		}
		return false, context.Cause(r.ctx)
	})
	if err != nil {
		r.fatal("no worker in Go waits for %s: %v", path, err)
	}
	if err := lease.Release(r.ctx); err != nil {
		r.fatal("releasing %s: %v", path, err)
	}
	return stolen
}

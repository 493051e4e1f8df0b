package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// churn opens and closes sessions. The run's own connections are idle.
func churn(r *run) error {
	return r.each(0, func(i int, _ *conn) error {
		for n := i; !r.over.Load() && r.ctx.Err() == nil; n += len(r.conns) {
			began := time.Now()
			c, err := r.dial(n)
			if err != nil {
				r.failure("no session", 1)
				if !r.sleep(10*time.Millisecond, nil) {
					break
				}
				continue
			}
			r.done(i, time.Since(began))
			c.close()
		}
		return r.ctx.Err()
	})
}

// fanOut makes every connection watch one znode, sets it, and waits until all have
// received the event. It repeats this until the run is over.
func fanOut(r *run) error {
	path := r.root + "/watched"
	if err := r.make(r.conns[0], path); err != nil {
		return err
	}
	setter, err := r.dial(0)
	if err != nil {
		return err
	}
	defer setter.close()
	if err := r.sync(path); err != nil {
		return err
	}
	rounds := newHistogram()
	for !r.over.Load() {
		counted := r.counting.Load()
		took, err := r.round(setter, path)
		if err != nil {
			return err
		}
		if counted && r.counting.Load() {
			_ = rounds.RecordValue(took.Microseconds())
		}
	}
	r.figure(Figure{"rounds", float64(rounds.TotalCount()), ""})
	r.figure(Figure{"all have received it, p50", float64(rounds.ValueAtQuantile(50)) / 1e3, "ms"})
	r.figure(Figure{"all have received it, worst", float64(rounds.Max()) / 1e3, "ms"})
	return nil
}

// round sets the watches, sets the znode once, and returns the time until the last connection
// received its event.
func (r *run) round(setter *conn, path string) (time.Duration, error) {
	watch := proto.GetDataRequest{Path: path, Watch: true}
	if err := r.each(0, func(_ int, c *conn) error { return c.call(proto.OpGetData, &watch, nil) }); err != nil {
		return 0, err
	}
	var ready sync.WaitGroup
	ready.Add(len(r.conns))
	var began atomic.Int64 // since base
	base := time.Now()
	heard := make(chan error, 1)
	go func() {
		heard <- r.each(0, func(i int, c *conn) error {
			ready.Done()
			if err := c.event(); err != nil {
				return err
			}
			r.done(i, time.Since(base)-time.Duration(began.Load()))
			return nil
		})
	}()
	ready.Wait()
	began.Store(int64(time.Since(base)))
	if err := setter.call(proto.OpSetData, &proto.SetDataRequest{Path: path, Data: r.value, Version: -1}, nil); err != nil {
		return 0, err
	}
	err := <-heard
	return time.Since(base) - time.Duration(began.Load()), err
}

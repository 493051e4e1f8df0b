package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkgo/zkgo/proto"
)

// run is one measurement under way.
type run struct {
	*meter
	cfg   Config
	ctx   context.Context
	root  string // the run's own znode
	keys  []string
	conns []*conn
	value []byte
}

// Run measures once. It fails if the servers cannot be reached or prepared, if a
// work breaks that cannot go on, and when ctx ends; requests that fail are counted
// in the Result instead. The znodes of a run that was broken off may stay behind.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := find(cfg.Work)
	r := &run{meter: newMeter(cfg.Conns, cfg.PIDs), cfg: cfg, ctx: ctx, value: make([]byte, cfg.Size)}
	fill(r.value, cfg.Seed)
	defer r.hangUp()
	if err := r.prepare(w); err != nil {
		return nil, fmt.Errorf("preparing %s: %w", cfg.Work, err)
	}
	err := r.measure(w)
	r.hangUp()
	if clean := r.clean(); err == nil && clean != nil {
		err = fmt.Errorf("removing %s: %w", r.root, clean)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Work, err)
	}
	if w.sum != nil {
		w.sum(r)
	}
	return r.result(&cfg), nil
}

// fill makes a value that does not compress.
func fill(b []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
}

// measure runs the work: for its time, or until it is done if it ends by itself.
func (r *run) measure(w *work) error {
	var beside errgroup.Group
	done := make(chan struct{})
	if r.cfg.Progress != nil {
		beside.Go(func() error { r.watch(r.cfg.Progress, done); return nil })
	}
	var err error
	if w.finite {
		err = errors.Join(r.begin(), w.run(r), r.end())
	} else {
		beside.Go(func() error { return r.clock(done) })
		err = w.run(r)
	}
	close(done)
	return errors.Join(err, beside.Wait())
}

// clock begins and ends the counting.
func (r *run) clock(done <-chan struct{}) error {
	if !r.sleep(r.cfg.Warmup, done) {
		return r.end()
	}
	err := r.begin()
	r.sleep(r.cfg.Duration, done)
	return errors.Join(err, r.end())
}

// sleep reports whether it has slept to the end.
func (r *run) sleep(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.ctx.Done():
	case <-done:
	}
	return false
}

// prepare connects and makes the znodes that the work needs.
func (r *run) prepare(w *work) error {
	r.conns = make([]*conn, r.cfg.Conns)
	err := r.each(32, func(i int, _ *conn) (err error) {
		r.conns[i], err = r.dial(i)
		return err
	})
	if err != nil {
		return err
	}
	path := ""
	for _, part := range strings.Split(strings.Trim(r.cfg.Root, "/"), "/") {
		path += "/" + part
		if part == "" {
			path = ""
			continue
		}
		if err := r.make(r.conns[0], path); err != nil && !errors.Is(err, proto.ErrNodeExists) {
			return err
		}
	}
	r.root = path + "/" + w.name + "-" + strconv.FormatUint(rand.Uint64(), 36)
	if err := r.make(r.conns[0], r.root); err != nil {
		return err
	}
	if w.prepare == nil {
		return nil
	}
	if err := w.prepare(r); err != nil {
		return err
	}
	return r.sync(r.root)
}

// sync makes every server show what was made through another.
func (r *run) sync(path string) error {
	return r.each(0, func(_ int, c *conn) error { return c.call(proto.OpSync, &proto.SyncRequest{Path: path}, nil) })
}

func (r *run) make(c *conn, path string) error {
	if err := c.call(proto.OpCreate, &proto.CreateRequest{Path: path, ACL: proto.OpenACL()}, nil); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}

func (r *run) dial(i int) (*conn, error) {
	return dial(r.ctx, &r.cfg, r.cfg.Servers[i%len(r.cfg.Servers)])
}

// each does something with every connection, with all at a time, or with some.
func (r *run) each(atATime int, do func(i int, c *conn) error) error {
	var g errgroup.Group
	if atATime > 0 {
		g.SetLimit(atATime)
	}
	for i, c := range r.conns {
		g.Go(func() error {
			if err := do(i, c); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (r *run) hangUp() {
	_ = r.each(256, func(_ int, c *conn) error {
		if c != nil {
			c.close()
		}
		return nil
	})
	r.conns = nil
}

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

// run is one measurement in progress.
type run struct {
	*meter
	cfg   Config
	ctx   context.Context
	root  string   // the run's own znode
	made  []string // the ancestors that this run has created and must remove
	keys  []string
	conns []*conn
	value []byte
}

// Run performs one measurement. It fails if it can't reach or prepare the servers, if
// the work breaks and can't continue, or if ctx ends. Requests that fail count in the
// Result instead. Run removes the znodes that it has created, even if it fails or ctx ends. The
// removal may need 30 more seconds. If it can't remove them, the error names them.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := find(cfg.Work)
	r := &run{meter: newMeter(cfg.Conns, cfg.PIDs), cfg: cfg, ctx: ctx, value: make([]byte, cfg.Size)}
	fill(r.value, cfg.Seed)
	defer r.hangUp()
	err := r.prepare(w)
	if err != nil {
		err = fmt.Errorf("preparing: %w", err)
	} else {
		err = r.measure(w)
	}
	r.hangUp()
	if clean := r.clean(); clean != nil {
		err = errors.Join(err, fmt.Errorf("%s was not removed: %w", r.root, clean))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Work, err)
	}
	if w.sum != nil {
		w.sum(r)
	}
	return r.result(&cfg), nil
}

// fill fills b with random bytes, so that the value doesn't compress.
func fill(b []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
}

// measure runs the work for the configured time, or to its end if the work is finite.
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

// clock starts and stops the counting.
func (r *run) clock(done <-chan struct{}) error {
	if !r.sleep(r.cfg.Warmup, done) {
		return r.end()
	}
	err := r.begin()
	r.sleep(r.cfg.Duration, done)
	return errors.Join(err, r.end())
}

// sleep reports whether it slept for the whole duration.
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

// prepare connects and creates the znodes that the work needs.
func (r *run) prepare(w *work) error {
	r.conns = make([]*conn, r.cfg.Conns)
	err := r.each(32, func(i int, _ *conn) (err error) {
		r.conns[i], err = r.dial(i)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.makeRoot(w); err != nil {
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

// makeRoot creates the run's own znode and its missing ancestors.
func (r *run) makeRoot(w *work) error {
	name := w.name + "-" + strconv.FormatUint(rand.Uint64(), 36)
	for try := 0; ; try++ {
		path := ""
		for part := range strings.SplitSeq(strings.Trim(r.cfg.Root, "/"), "/") {
			if part == "" {
				continue
			}
			path += "/" + part
			err := r.make(r.conns[0], path)
			if err == nil {
				r.made = append(r.made, path)
			} else if !errors.Is(err, proto.ErrNodeExists) {
				return err
			}
		}
		err := r.make(r.conns[0], path+"/"+name)
		if errors.Is(err, proto.ErrNoNode) && try < 3 {
			continue // another run has just removed the parent
		}
		if err == nil {
			r.root = path + "/" + name
		}
		return err
	}
}

// sync waits until every server shows the writes that went through other servers.
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

// cleanTime limits the removal of the run's znodes.
const cleanTime = 30 * time.Second

// each calls do for every connection: for atATime connections at once, or for all at
// once if atATime is 0.
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

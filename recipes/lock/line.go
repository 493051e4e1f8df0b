package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// ranker says whom the place at index self has to wait for; "" if for nobody.
type ranker func(line []entry, self int) (ahead string)

// first waits for the place just before.
func first(line []entry, self int) string {
	if self == 0 {
		return ""
	}
	return line[self-1].name
}

// line is a directory in which contenders of some kinds stand.
type line struct {
	conn    recipes.Conn
	dir     string
	infixes infixes
	cfg     config
}

// wish is what somebody wants of a line.
type wish struct {
	kind kind
	rank ranker
	try  bool // do not wait
}

// acquire takes a place and waits until rank says that it is its turn.
func (l *line) acquire(ctx context.Context, want wish) (*grant, error) {
	if infix := l.infixes[want.kind]; infix == "" || strings.Contains(infix, "/") {
		return nil, l.failure(fmt.Errorf("%q cannot be part of a znode's name", infix))
	}
	return repeat(ctx, l.cfg.retry, l.failure, func() (*grant, error) {
		g, err := l.attempt(ctx, want)
		if err != nil {
			return nil, l.failure(err)
		}
		return g, nil
	})
}

// attempt takes one place and waits with it.
func (l *line) attempt(ctx context.Context, want wish) (*grant, error) {
	c, err := enter(ctx, l.conn, l.dir, l.infixes[want.kind], &l.cfg)
	if err != nil {
		return nil, err
	}
	g, err := l.wait(ctx, c, want)
	if err != nil && !errors.Is(err, errVanished) {
		c.remove()
	}
	return g, err
}

// repeat attempts again, as long as the policy wants it, when an attempt failed
// because the waiter's znode or session had gone. failure says of what the wait
// between was, when ctx ends in it.
func repeat[T any](ctx context.Context, policy client.RetryPolicy, failure func(error) error, attempt func() (T, error)) (T, error) {
	began := time.Now()
	for failed := 1; ; failed++ {
		got, err := attempt()
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", err, cause) // whatever came of it in the last request
		}
		if err == nil || !errors.Is(err, errVanished) && !errors.Is(err, client.ErrSessionExpired) {
			return got, err
		}
		pause, again := policy.Retry(failed, time.Since(began))
		if !again {
			return got, err
		}
		if err := recipes.Sleep(ctx, pause); err != nil {
			return got, failure(err)
		}
	}
}

func (l *line) failure(err error) error { return fmt.Errorf("lock %s: %w", l.dir, err) }

// wait waits for a contender's turn.
func (l *line) wait(ctx context.Context, c *contender, want wish) (*grant, error) {
	for {
		names, _, err := c.session.Children(ctx, l.dir)
		if errors.Is(err, client.ErrNoNode) {
			return nil, errVanished
		}
		if err != nil {
			return nil, err
		}
		places, err := l.places(ctx, c.session, names)
		if err != nil {
			return nil, err
		}
		self := slices.IndexFunc(places, func(e entry) bool { return e.name == c.name })
		if self < 0 {
			return nil, errVanished
		}
		ahead := want.rank(places, self)
		switch {
		case ahead == "":
			return grantTo(ctx, c, &l.cfg)
		case want.try:
			return nil, ErrNotAcquired
		}
		if err := recipes.AwaitChange(ctx, c.session, recipes.Join(l.dir, ahead)); err != nil {
			return nil, err
		}
	}
}

// places returns the places among names in their order. Where numbers may repeat
// they say nothing, and the znodes have to be asked when they were created.
func (l *line) places(ctx context.Context, s recipes.Session, names []string) ([]entry, error) {
	list := l.infixes.line(names)
	var there []entry
	worn := 0
	for _, e := range list {
		if e.worn() {
			worn++
		}
	}
	if worn < 2 {
		return list, nil
	}
	for _, e := range list {
		if e.worn() {
			stat, found, err := s.Exists(ctx, recipes.Join(l.dir, e.name))
			if err != nil {
				return nil, err
			}
			if !found {
				continue
			}
			e.born = stat.Czxid
		}
		there = append(there, e)
	}
	arrange(there)
	return there, nil
}

// briefly returns a context for tidying up, which goes on for a little while though
// ctx has ended.
func briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// tidy releases what an Acquire held on its way.
func tidy(ctx context.Context, g *grant) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	_ = g.release(ctx) // what fails goes on in the background
}

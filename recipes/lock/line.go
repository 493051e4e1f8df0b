package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// ranker returns the name of the znode that the place at index self must wait for, or ""
// if it doesn't have to wait.
type ranker func(line []entry, self int) (ahead string)

// first waits for the place directly before.
func first(line []entry, self int) string {
	if self == 0 {
		return ""
	}
	return line[self-1].name
}

// line is a directory with places of some kinds.
type line struct {
	conn    recipes.Conn
	dir     string
	infixes infixes
	cfg     config
}

// wish describes an Acquire.
type wish struct {
	kind kind
	rank ranker
	try  bool // don't wait for others
}

// acquire joins the line and waits for its turn according to rank.
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

// attempt joins the line once and waits for its turn.
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

// repeat repeats attempt, as long as policy allows it, when the waiter's znode or
// session was lost. failure adds the name of the lock to the error when ctx ends
// during a pause.
func repeat[T any](ctx context.Context, policy client.RetryPolicy, failure func(error) error, attempt func() (T, error)) (T, error) {
	began := time.Now()
	for failed := 1; ; failed++ {
		got, err := attempt()
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", err, cause) // always return ctx's cause, too
		}
		if err == nil || !errors.Is(err, errVanished) && !errors.Is(err, client.ErrSessionExpired) {
			return got, err
		}
		pause, again := policy.Retry(failed, time.Since(began))
		if !again {
			return got, err
		}
		if err := recipe.Sleep(ctx, pause); err != nil {
			return got, failure(err)
		}
	}
}

func (l *line) failure(err error) error { return fmt.Errorf("lock %s: %w", l.dir, err) }

// wait waits until it is the contender's turn.
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
		if err := recipe.AwaitChange(ctx, c.session, recipe.Join(l.dir, ahead)); err != nil {
			return nil, err
		}
	}
}

// places returns the places among names in their order. If sequence numbers may be
// repeated, they have no order, so we read when those znodes were created.
func (l *line) places(ctx context.Context, s recipes.Session, names []string) ([]entry, error) {
	list := l.infixes.line(names)
	worn := 0
	for _, e := range list {
		if e.worn() {
			worn++
		}
	}
	if worn < 2 {
		return list, nil
	}
	var existing []entry
	for _, e := range list {
		if e.worn() {
			stat, found, err := s.Exists(ctx, recipe.Join(l.dir, e.name))
			if err != nil {
				return nil, err
			}
			if !found {
				continue
			}
			e.born = stat.Czxid
		}
		existing = append(existing, e)
	}
	arrange(existing)
	return existing, nil
}

// briefly returns a context for cleaning up, which lasts for patience even if ctx has
// ended.
func briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// tidy releases a grant that an Acquire held temporarily.
func tidy(ctx context.Context, g *grant) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	_ = g.release(ctx) // if this fails, it continues in the background
}

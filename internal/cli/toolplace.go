package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// connectPatience limits the wait for a connection to a second ensemble.
const connectPatience = 30 * time.Second

// place parses an argument that names a subtree: a path in the session's ensemble, or
// servers of another ensemble followed by a path, e.g. "zk1:2181,zk2:2181/app". It opens
// the session with another ensemble with the same options; the caller must call the
// returned function to close it. We end the command if one of its ensembles is unreachable
// for too long.
func (c *Call) place(ctx context.Context, arg string) (subtree.Place, func(), error) {
	hosts, path, other := strings.Cut(arg, "/")
	if !other {
		return subtree.Place{}, nil, misuse("%q is neither a path, which begins with /, nor servers and a path, as host:port/path", arg)
	}
	path = "/" + path
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	if hosts == "" {
		zk, err := c.Client()
		return subtree.Place{Client: zk, Root: path}, func() {}, err
	}
	trouble := newTrouble(c.shell.cfg.TLS, func(causes []string) {
		c.shell.events.note("No connection to " + hosts + " yet, trying again:\n  " + strings.Join(causes, "\n  ") + "\n")
	})
	zk, err := client.Connect(ctx, hosts, append(slices.Clone(c.shell.cfg.Options), client.WithLazy(), trouble.option())...)
	if err != nil {
		return subtree.Place{}, nil, err
	}
	trouble.begin(zk)
	closeAll := func() {
		trouble.end()
		zk.Close() //nolint:errcheck // the session ends by itself otherwise
	}
	limited, cancel := context.WithTimeoutCause(ctx, connectPatience, errNoConnection)
	defer cancel()
	if err := zk.Await(limited); err != nil {
		if errors.Is(err, errNoConnection) {
			err = trouble.giveUp(zk, connectPatience)
		}
		closeAll()
		return subtree.Place{}, nil, fmt.Errorf("%s: %w", hosts, err)
	}
	stop := c.shell.oversee(ctx, zk, trouble, c.giveUp)
	return subtree.Place{Client: zk, Root: path}, func() {
		stop()
		closeAll()
	}, nil
}

// places parses the two arguments of a command with a source and a target.
func (c *Call) places(ctx context.Context) (from, to subtree.Place, done func(), err error) {
	from, doneFrom, err := c.place(ctx, c.Args[0])
	if err != nil {
		return from, to, nil, err
	}
	to, doneTo, err := c.place(ctx, c.Args[1])
	if err != nil {
		doneFrom()
		return from, to, nil, err
	}
	return from, to, func() { doneTo(); doneFrom() }, nil
}

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

// connectPatience is how long a second ensemble may take to answer.
const connectPatience = 30 * time.Second

// place reads an argument that says where a subtree is: a path of the session's
// ensemble, or servers of another one with the path behind them, as
// "zk1:2181,zk2:2181/app". The session on another ensemble is opened with the same
// options and has to be closed by the function; the command ends when one of its
// ensembles is out of reach for too long.
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

// places reads the two arguments of a command that goes from one place to another.
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

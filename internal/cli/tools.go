package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// toolCommands returns the commands that zkCli.sh doesn't have. Package cli/subtree
// does most of their work.
func toolCommands() []Command {
	list := []Command{
		treeCommand(), findCommand(), duCommand(), copyCommand(), moveCommand(), removeCommand(),
		watchTreeCommand(), exportCommand(), importCommand(), diffCommand(), editCommand(), topCommand(),
	}
	for i := range list {
		run := list[i].Run
		list[i].Run = func(ctx context.Context, c *Call) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			c.giveUp = cancel
			return toolError(ctx, run(ctx, c))
		}
	}
	return list
}

// toolError keeps an error's text. We don't use zkCli.sh's messages, because a tool should report
// its progress and the path where it stopped.
func toolError(ctx context.Context, err error) error {
	exit := (*Exit)(nil)
	switch cause := context.Cause(ctx); {
	case err == nil || errors.As(err, &exit):
		return err
	case errors.Is(cause, diagnose.ErrNoConnection):
		text := err.Error()
		if inner := (*client.Error)(nil); errors.As(err, &inner) && errors.Is(inner, diagnose.ErrNoConnection) {
			text, _, _ = strings.Cut(text, ": no connection (") // the rest repeats the cause in other words
			text = strings.TrimSuffix(text, ": "+cause.Error())
		}
		return &Exit{Code: codeFailed, Message: text + ": the connection is lost: " + cause.Error(), Err: err}
	}
	return &Exit{Code: codeFailed, Message: plainWords(err) + way(err), Err: err}
}

// plainWords returns an error's text. The client's words for a server's refusal name the request
// and the code; we replace them with the words of all other commands.
func plainWords(err error) string {
	e := (*client.Error)(nil)
	if !errors.As(err, &e) || e.Code == 0 || e.Err != nil || e.Unknown {
		return err.Error()
	}
	return strings.Replace(err.Error(), e.Error(), refusal(e), 1)
}

// way returns advice that names the option that avoids an error, if there is one.
func way(err error) string {
	for _, w := range []struct {
		cause error
		hint  string
	}{
		{subtree.ErrTargetExists, "use -merge to create only missing znodes, -overwrite to also replace existing ones, or another target"},
		{subtree.ErrNoParent, "use -parents to create it"},
		{subtree.ErrHiddenACL, "authenticate with addauth or --auth, or ignore ACLs with -noacl"},
		{subtree.ErrProtected, "use rm -r -below to delete its descendants"},
		{client.ErrNoAuth, "authenticate with addauth or --auth"},
	} {
		if errors.Is(err, w.cause) {
			return ": " + w.hint
		}
	}
	return ""
}

// connectPatience limits the wait for a connection to a second ensemble.
const connectPatience = 30 * time.Second

// place parses an argument that names a subtree: a path in the session's ensemble, or
// servers of another ensemble followed by a path, e.g. "zk1:2181,zk2:2181/app". It
// opens the session with another ensemble with the same options; the caller must call
// the returned function to close it. The command ends if one of its ensembles is
// unreachable for too long.
func (c *Call) place(ctx context.Context, arg string) (subtree.Place, func(), error) {
	hosts, path, other := strings.Cut(arg, "/")
	if !other {
		return subtree.Place{}, nil, misuse("%q: want a path that begins with /, or host:port/path", arg)
	}
	path = "/" + path
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	if hosts == "" {
		zk, err := c.Client()
		return subtree.Place{Client: zk, Root: path}, func() {}, err
	}
	trouble := diagnose.New(c.shell.cfg.TLS, func(causes []string) {
		c.shell.events.note("No connection to " + hosts + " yet, trying again:\n  " + strings.Join(causes, "\n  ") + "\n")
	})
	zk, err := client.Connect(ctx, hosts, append(slices.Clone(c.shell.cfg.Options), client.WithLazy(), trouble.Option())...)
	if err != nil {
		return subtree.Place{}, nil, err
	}
	trouble.Begin(zk)
	closeAll := func() {
		trouble.End()
		zk.Close() //nolint:errcheck // the session ends by itself otherwise
	}
	limited, cancel := context.WithTimeoutCause(ctx, connectPatience, diagnose.ErrNoConnection)
	defer cancel()
	if err := zk.Await(limited); err != nil {
		if errors.Is(err, diagnose.ErrNoConnection) {
			err = trouble.GiveUp(zk, connectPatience)
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

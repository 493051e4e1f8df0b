package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/client"
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

// toolError keeps an error's text. We don't use zkCli.sh's messages, because a tool should
// report where it stopped and what it did until then.
func toolError(ctx context.Context, err error) error {
	exit := (*Exit)(nil)
	switch cause := context.Cause(ctx); {
	case err == nil || errors.As(err, &exit):
		return err
	case errors.Is(cause, errNoConnection):
		text := err.Error()
		if inner := (*client.Error)(nil); errors.As(err, &inner) && errors.Is(inner, errNoConnection) {
			text, _, _ = strings.Cut(text, ": no connection (") // the rest repeats the cause in other words
			text = strings.TrimSuffix(text, ": "+cause.Error())
		}
		return &Exit{Code: codeFailed, Message: text + ": the connection is lost: " + cause.Error(), Err: err}
	}
	return &Exit{Code: codeFailed, Message: err.Error() + way(err), Err: err}
}

// way returns advice that names the option that avoids an error, if there is one.
func way(err error) string {
	for _, w := range []struct {
		cause error
		hint  string
	}{
		{subtree.ErrTargetExists, "-merge creates only what is missing, -overwrite also replaces what differs; or name another target"},
		{subtree.ErrNoParent, "-parents creates it"},
		{subtree.ErrHiddenACL, "prove an identity with addauth or --auth, or leave ACLs out with -noacl"},
		{subtree.ErrProtected, "rm -r -below deletes what is below it"},
		{client.ErrNoAuth, "prove an identity with addauth or --auth"},
	} {
		if errors.Is(err, w.cause) {
			return ": " + w.hint
		}
	}
	return ""
}

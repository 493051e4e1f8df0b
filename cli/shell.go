package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkgo/zkgo/client"
)

// Config says what a [Shell] works with.
type Config struct {
	// Server is the connect string, host:port,…/chroot.
	Server string
	// Timeout is the session timeout that is asked for; 0 for 30 seconds.
	Timeout time.Duration
	// Options are more options of the client: TLS, credentials, read-only.
	Options []client.Option
	// In, Out and Err are the streams.
	In       io.Reader
	Out, Err io.Writer
	// Term is what Out is.
	Term Term
	// JSON writes data as JSON, a document a line.
	JSON bool
}

// Shell runs commands in one session. It is not safe for concurrent use.
type Shell struct {
	cfg Config
	zk  *client.Client
}

// errNotConnected is the answer of a command that needs a session.
var errNotConnected = errors.New("Not connected") //nolint:staticcheck // zkCli.sh's words

// New returns a shell that is not connected yet.
func New(cfg Config) *Shell { return &Shell{cfg: cfg} }

// Run runs one command with its arguments.
func (s *Shell) Run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return refuse("No command entered")
	}
	command, ok := Find(args[0])
	if !ok {
		return &Exit{Code: 127, Message: "Command not found: Command not found " + args[0]}
	}
	rest, options, err := parseOptions(command.Options, args[1:])
	if err != nil {
		return err
	}
	call := &Call{
		Args: rest, In: s.cfg.In, Out: s.cfg.Out, Err: s.cfg.Err, Term: s.cfg.Term,
		command: &command, options: options, shell: s,
	}
	if len(rest) < command.Least {
		return call.UsageError()
	}
	if err := command.Run(ctx, call); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

func (s *Shell) client() (*client.Client, error) {
	if s.zk == nil {
		return nil, errNotConnected
	}
	return s.zk, nil
}

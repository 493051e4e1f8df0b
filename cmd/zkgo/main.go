// Command zkgo is a ZooKeeper-compatible coordination server.
//
// This package contains only the flags and the terminal output. The logic belongs in other
// packages.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	args, err := commandLine()
	if err == nil {
		err = run(ctx, args, os.Stdin, os.Stdout, os.Stderr)
	}
	stop()
	if err == nil {
		return
	}
	code, tell := codeOf(err)
	if tell {
		fmt.Fprintf(os.Stderr, "zkgo: %v\n", err)
	}
	os.Exit(code)
}

// run executes one command line. It returns when the command is done or ctx ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := newCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		withoutMarks(cmd)
	}
	cmd.SetFlagErrorFunc(func(at *cobra.Command, err error) error {
		if word := unknownWord(at, args); word != "" { // its flags can't be known
			err = unknownCommand(at, word)
		}
		return flagError(at, err)
	})
	cmd.SetArgs(withLongFlags(cmd, args))
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cmd.ExecuteContext(ctx)
}

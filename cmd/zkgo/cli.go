package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zkgo/zkgo/internal/cli"
	"github.com/zkgo/zkgo/internal/cli/terminal"
	"github.com/zkgo/zkgo/internal/version"
)

// shellFlags contains the flags of all commands that run a command of the shell.
type shellFlags struct {
	connectFlags
	quiet          bool
	output, colour string
}

// register declares the flags.
func (f *shellFlags) register(flags *pflag.FlagSet) {
	f.connectFlags.register(flags, clientSettings)
	outputVar(flags, &f.output)
	choiceVar(flags, &f.colour, "color", "", "`when` to use colours", "auto", "always", "never")
}

// cliFlags contains the flags of zkgo cli.
type cliFlags struct {
	shellFlags
	wait, stop bool
	history    string
}

func cliCommand() *cobra.Command {
	f := cliFlags{shellFlags: shellFlags{connectFlags: connectFlags{zkCli: true}}}
	cmd := &cobra.Command{
		Use:   "cli [flags] [command argument…]",
		Short: "ZooKeeper's shell (zkCli.sh), for zkgo and ZooKeeper",
		Long: `ZooKeeper's shell: all commands and options of zkCli.sh 3.9, with the same output.

With a command as argument, the shell runs the command and exits: with 0 if it
succeeded, 1 if it failed, and 2 if the command line is wrong. Otherwise, the shell
reads commands from the standard input: with a prompt, history and completion if
that is a terminal, otherwise as a script. A script exits with the code of the last
line that failed. Use help for a list of commands, and COMMAND -h for one command.

Commands wait up to --timeout for a connection, and print to stderr why a server
can't be used. For data, use - for the standard input and @FILE for the content of
a file. Without a prompt, the standard output contains only data.

The flags of zkCli.sh also work with one hyphen: -server, -r, -waitforconnection,
-client-configuration, and -timeout for --session-timeout. Most commands also exist
without the word cli: zkgo get, zkgo ls, ...`,
		Example: `  zkgo cli                                       # localhost:2181
  zkgo cli -server zk1:2181,zk2:2181/app
  zkgo cli -s zk1:2181 get -s /config
  zkgo cli -o json ls / | jq .children
  zkgo cli set /app/logo @logo.png
  zkgo cli --tls-ca ca.pem --tls-cert me.pem -server zk1:2281 ls /
  zkgo cli --auth @secret.txt < script.txt`,
		DisableFlagParsing: true, // zkCli.sh's flags have one hyphen, and arguments after the command belong to the command
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmd.Flags().Parse(twoHyphens(cmd, args, false)); err != nil {
				return flagError(cmd, err)
			}
			if help, _ := cmd.Flags().GetBool("help"); help {
				return cmd.Help()
			}
			if err := realFiles(cmd); err != nil {
				return err
			}
			return f.run(cmd)
		},
		ValidArgsFunction: f.completeLine,
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.register(flags)
	flags.BoolVar(&f.wait, "waitforconnection", false, "first wait for a connection, for at most the session timeout")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only data, no messages about the connection")
	flags.BoolVarP(&f.stop, "stop-on-error", "e", false, "end a script at the first command that fails")
	flags.StringVar(&f.history, "history", defaultHistory(), `history file; "" disables the history`)
	flags.Lookup("history").DefValue = "~/" + historyName // the man page should not depend on the user
	return cmd
}

// twoHyphens adds a second hyphen to flags of several letters, such as zkCli.sh's -server.
// The flags end at the first argument, unless they are interspersed.
func twoHyphens(cmd *cobra.Command, args []string, interspersed bool) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			if !interspersed {
				return append(out, args[i:]...) // the command and its arguments
			}
			out = append(out, arg)
			continue
		}
		name, value, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !interspersed && name == "timeout" && !strings.HasPrefix(arg, "--") {
			name = "session-timeout" // of zkCli.sh
			if arg = "-" + name; assigned {
				arg += "=" + value
			}
		}
		flag := cmd.Flags().Lookup(name)
		if !strings.HasPrefix(arg, "--") && flag != nil && len(name) > 1 {
			arg = "-" + arg
		}
		out = append(out, arg)
		if len(name) == 1 {
			flag = cmd.Flags().ShorthandLookup(name)
		}
		if flag != nil && flag.NoOptDefVal == "" && !assigned && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

// historyName is the name of the history file in the home directory.
const historyName = ".zkgo_history"

// defaultHistory returns the default path of the history file.
func defaultHistory() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, historyName)
}

// run runs the command, the script or the prompt.
func (f *cliFlags) run(cmd *cobra.Command) error {
	config, err := f.config(cmd)
	if err != nil {
		return err
	}
	config.Prompt = cmd.Flags().NArg() == 0 && isTerminal(config.In) && config.Term.Width > 0
	return inShell(config, func(shell *cli.Shell) (int, error) { return f.session(cmd, shell, config) })
}

// inShell calls do with a shell, and turns its exit code into an error.
func inShell(config cli.Config, do func(*cli.Shell) (code int, err error)) error {
	shell := cli.New(config)
	code, err := do(shell)
	if closed := shell.Close(); err == nil && code == 0 {
		err = closed
	}
	if err == nil && code != 0 {
		err = exitCode(code)
	}
	return err
}

// config builds the configuration from the flags.
func (f *shellFlags) config(cmd *cobra.Command) (c cli.Config, err error) {
	if err := f.resolve(cmd); err != nil {
		return c, err
	}
	c = cli.Config{
		Server: f.server, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(),
		JSON: f.output == "json", Quiet: f.quiet, Version: fmt.Sprintf("%s, zkgo %s", version.Compatible, version.Own()),
	}
	c.Timeout, c.Patience = f.sessionTimeout, f.timeout
	if !cmd.Flags().Changed("timeout") && f.settings.origin["timeout"] == "" {
		c.Patience = min(c.Patience, c.Timeout) // as zkCli.sh's -timeout
	}
	if c.Options, err = f.options(); err != nil {
		return c, err
	}
	if c.TLS, err = f.tlsConfig(); err != nil {
		return c, err
	}
	c.Term = describeTerm(c.Out, f.colour)
	return c, nil
}

// session connects and runs the commands.
func (f *cliFlags) session(cmd *cobra.Command, shell *cli.Shell, config cli.Config) (code int, err error) {
	ctx, args := cmd.Context(), cmd.Flags().Args()
	if !shell.NeedsConnection(args) {
		return shell.Command(ctx, args), nil
	}
	if !f.quiet && !config.JSON {
		to := config.Err
		if config.Prompt {
			to = config.Out
		}
		fmt.Fprintln(to, "Connecting to "+config.Server)
	}
	if err := shell.Connect(config.Server); err != nil {
		return 1, err
	}
	if f.wait {
		if err := shell.Await(ctx); err != nil {
			return 1, err
		}
	}
	switch {
	case len(args) > 0:
		return shell.Command(ctx, args), nil
	case config.Prompt:
		return f.interactive(ctx, shell)
	}
	return shell.Script(ctx, config.In, f.stop), nil
}

// interactive reads commands from the terminal. The interrupt key ends a command
// instead of the shell, and SIGTERM restores the terminal.
func (f *cliFlags) interactive(ctx context.Context, shell *cli.Shell) (int, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return 1, fmt.Errorf("the terminal: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	defer signal.Stop(ended)
	go func() {
		<-ended
		_ = term.Restore(fd, before)
		os.Exit(128 + int(syscall.SIGTERM))
	}()
	return shell.Interactive(context.WithoutCancel(ctx), cli.Prompt{
		History: f.history,
		Raw: func() (func(), error) {
			state, err := term.MakeRaw(fd)
			return func() { _ = term.Restore(fd, state) }, err
		},
		Size: func() (width, height int) {
			width, height, _ = term.GetSize(int(os.Stdout.Fd())) // 0: unchanged
			return width, height
		},
		Interruptible: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt)
		},
	})
}

// describeTerm describes the output terminal.
func describeTerm(out io.Writer, colour string) (t terminal.Term) {
	file, ok := out.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		var err error
		if t.Width, t.Height, err = term.GetSize(int(file.Fd())); err != nil || t.Width == 0 {
			t.Width, t.Height = 80, 24
		}
	}
	switch colour {
	case "auto":
		t.Colour = t.Width > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		t.Colour = true
	}
	return t
}

func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// exitCode is an error that has already been reported.
type exitCode int

// Error implements error.
func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// codeOf returns the exit code for an error, and whether the error must still be
// reported.
func codeOf(err error) (code int, tell bool) {
	if code := exitCode(0); errors.As(err, &code) {
		return int(code), false
	}
	if u := (*usageError)(nil); errors.As(err, &u) {
		return codeUsage, true
	}
	if exit := (*cli.Exit)(nil); errors.As(err, &exit) {
		return exit.Code, true
	}
	return codeFailed, true
}

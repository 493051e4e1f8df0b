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
	"golang.org/x/term"

	"github.com/zkgo/zkgo/internal/cli"
	"github.com/zkgo/zkgo/internal/cli/terminal"
	"github.com/zkgo/zkgo/internal/version"
)

// cliFlags holds the flags of zkgo cli.
type cliFlags struct {
	connectFlags
	wait, quiet, stop bool
	output, history   string
	colour            string
}

func cliCommand() *cobra.Command {
	var f cliFlags
	cmd := &cobra.Command{
		Use:   "cli [flags] [command argument…]",
		Short: "ZooKeeper's shell: zkCli.sh, for any ZooKeeper",
		Long: `ZooKeeper's shell: every command and option of zkCli.sh 3.9, with its output.

With a command it runs that and ends. The exit code is 0 only if the command did
what it was told, 1 if it failed, and 2 if the command line is wrong. Without a
command it reads commands: at a terminal with a prompt, history and completion of
commands and paths, otherwise line by line. A script's exit code is that of the
last line that failed. help lists the commands, and COMMAND -h explains one.

Commands wait up to 10 seconds for a connection, and say at once on the error
stream why each server cannot be used. As data, - is the standard input and @FILE
the content of a file.

The flags of zkCli.sh are understood with one hyphen, too: -server, -timeout, -r,
-waitforconnection, -client-configuration.`,
		Example: `  zkgo cli                                       # localhost:2181
  zkgo cli -server zk1:2181,zk2:2181/app
  zkgo cli -server zk1:2181 get -s /config
  zkgo cli -o json ls / | jq .children
  zkgo cli set /app/logo @logo.png
  zkgo cli --tls-ca ca.pem --tls-cert me.pem -server zk1:2281 ls /
  zkgo cli --auth @secret.txt < script.txt`,
		DisableFlagParsing: true, // zkCli.sh's flags have one hyphen, and arguments after the command belong to the command
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmd.Flags().Parse(twoHyphens(cmd, args)); err != nil {
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
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, c := range cli.Commands() {
					names = append(names, c.Name+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.register(flags)
	flags.BoolVar(&f.wait, "waitforconnection", false, "wait for the connection before anything else, at most for the session timeout")
	flags.StringVarP(&f.output, "output", "o", "text", "form of data: text or json")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print the data only, nothing about the connection")
	flags.BoolVarP(&f.stop, "stop-on-error", "e", false, "end a script at the first command that fails")
	flags.StringVar(&f.history, "history", defaultHistory(), `file of old lines; "" keeps none`)
	flags.Lookup("history").DefValue = "~/" + historyName // the man page should not depend on the user
	flags.StringVar(&f.colour, "color", "auto", "colours: auto, always or never")
	return cmd
}

// twoHyphens adds a second hyphen to the flags of zkCli.sh, such as -server.
func twoHyphens(cmd *cobra.Command, args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || !strings.HasPrefix(arg, "-") || arg == "-" {
			return append(out, args[i:]...) // the command and its arguments
		}
		name, _, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
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
	shell := cli.New(config)
	code, err := f.session(cmd, shell, config)
	if closed := shell.Close(); err == nil && code == 0 {
		err = closed
	}
	if err == nil && code != 0 {
		err = exitCode(code)
	}
	return err
}

// config builds the configuration from the flags.
func (f *cliFlags) config(cmd *cobra.Command) (c cli.Config, err error) {
	if f.output != "text" && f.output != "json" {
		return c, usagef("--output %q: want text or json", f.output)
	}
	c = cli.Config{
		Server: f.server, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(),
		JSON: f.output == "json", Quiet: f.quiet, Version: fmt.Sprintf("%s, zkgo %s", version.Compatible, version.Own()),
	}
	if c.Timeout, err = f.sessionTimeout(); err != nil {
		return c, err
	}
	if c.Options, err = f.options(); err != nil {
		return c, err
	}
	if c.TLS, err = f.tlsConfig(); err != nil {
		return c, err
	}
	c.Term, err = describeTerm(c.Out, f.colour)
	return c, err
}

// session connects and runs the commands.
func (f *cliFlags) session(cmd *cobra.Command, shell *cli.Shell, config cli.Config) (code int, err error) {
	ctx, args := cmd.Context(), cmd.Flags().Args()
	if cli.WantsHelp(args) {
		return shell.Command(ctx, args), nil
	}
	if !f.quiet && !config.JSON {
		fmt.Fprintln(config.Out, "Connecting to "+config.Server)
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
	case isTerminal(config.In) && config.Term.Width > 0:
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
func describeTerm(out io.Writer, colour string) (t terminal.Term, err error) {
	file, ok := out.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		if t.Width, t.Height, err = term.GetSize(int(file.Fd())); err != nil || t.Width == 0 {
			t.Width, t.Height = 80, 24
		}
	}
	switch colour {
	case "auto":
		t.Colour = t.Width > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		t.Colour = true
	case "never":
	default:
		return t, usagef("--color %q: want auto, always or never", colour)
	}
	return t, nil
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
	return codeFailed, true
}

// Package cli implements a command-line client for ZooKeeper ensembles: all commands
// of ZooKeeper's own shell, zkCli.sh, and tools that users would otherwise install
// separately.
//
// It needs no terminal: a [Shell] runs a command, a line or a script, or reads commands at a
// prompt. cmd/zkgo defines the flags. It works with any ZooKeeper: it imports package client, proto
// for its vocabulary, the packages below it, and nothing of the server.
//
// # A command
//
// A command is a [Command]: a value, not a type. To add one, declare it in one of the
// functions that [Commands] calls. Help, completion and the shell look it up there, so it
// needs no other registration.
//
//	Command{
//		Name:    "count",
//		Usage:   "[-d depth] path",
//		Short:   "count the znodes below a path",
//		Options: []Option{{Name: "d", Arg: "depth", Help: "how deep to go"}},
//		Least:   1,
//		Run: func(ctx context.Context, c *Call) error {
//			zk, err := c.Client()
//			if err != nil {
//				return err
//			}
//			n, err := zk.ChildrenCount(ctx, c.Args[0])
//			if err != nil {
//				return err
//			}
//			return c.Emit(map[string]any{"path": c.Args[0], "count": n}, func(w io.Writer) {
//				fmt.Fprintln(w, n)
//			})
//		},
//	}
//
// Options follow the rules of zkCli.sh: they may appear anywhere, "-sw" is "-s -w", and
// "--" ends them. Data goes to Call.Out through [Call.Emit], which writes JSON instead in
// JSON mode; everything else (progress, notices) goes to Call.Err. Commands should return
// errors and never print them: the shell prints them in ZooKeeper's words to the error
// stream and keeps the exit code.
//
// # Invariants
//
//   - A command of zkCli.sh prints the same bytes as zkCli.sh to the same stream;
//     tests/compat/operator/cli runs both and contains the table of deliberate differences.
//   - Colours, columns and progress appear only on a terminal.
//   - ctx ends every command: an interrupt ends the command, not the shell.
package cli

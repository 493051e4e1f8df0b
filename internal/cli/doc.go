// Package cli is the command line of a ZooKeeper ensemble: ZooKeeper's own shell,
// zkCli.sh, command by command, and what people install other tools for.
//
// It is an engine without a terminal of its own: [Shell] runs a command, a line or
// a script, and reads them from somebody at a prompt. The flags are cmd/zkgo's.
// It works against any ZooKeeper: it imports package client, proto for its
// vocabulary, cli/subtree, and nothing of the server.
//
// # A command
//
// A command is a [Command]: a value, not a type. It is declared in one of the
// functions that [Commands] lists, and found from there by help, by completion and
// by the shell. There is no other place to register it.
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
// Options are read as zkCli.sh reads them: they may stand anywhere, "-sw" is
// "-s -w", and "--" ends them. What is data goes to Call.Out through [Call.Emit],
// which writes JSON instead if that is wanted; everything else (progress, notices)
// goes to Call.Err. An error is returned, never printed: the shell says it in
// ZooKeeper's words on the error stream and remembers the exit code.
//
// # Invariants
//
//   - What a command of zkCli.sh prints is what zkCli.sh prints, byte for byte and
//     on the same stream; tests/operator/cli asks both and holds the table of what
//     differs on purpose.
//   - Colours, columns and progress appear on a terminal only.
//   - ctx ends every command: an interrupt ends the command, not the shell.
package cli

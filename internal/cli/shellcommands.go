package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// shellCommands returns the commands for the shell itself.
func shellCommands() []Command {
	return []Command{
		{Name: "connect", Usage: "host:port", Short: "reconnect, optionally to other servers", Most: 1, Offline: true, Run: connect},
		{Name: "close", Usage: "", Short: "end the session", Run: closeSession},
		{Name: "history", Usage: "", Short: "list the last commands", Offline: true, Run: history},
		{Name: "redo", Usage: "cmdno", Short: "run a command of the history again", Most: 1, Offline: true, Run: redo},
		{Name: "printwatches", Usage: "on|off", Short: "show or set whether events are printed", Most: 1, Offline: true, Run: printWatches},
		{Name: "version", Usage: "", Short: "print the version", Offline: true, Run: showVersion},
		{Name: "help", Usage: "[command]", Short: "list the commands, or describe one", Most: 1, Offline: true, Run: help},
		{Name: "quit", Usage: "", Short: "end the session and the shell", Offline: true, Run: quit},
	}
}

func quit(_ context.Context, c *Call) error {
	return errors.Join(errQuit, c.shell.disconnect())
}

// errQuit is returned by quit and ends the shell.
var errQuit = errors.New("quit")

func connect(_ context.Context, c *Call) error {
	server := c.shell.cfg.Server
	if len(c.Args) > 0 {
		server = c.Args[0]
	}
	return c.shell.Connect(server)
}

func closeSession(_ context.Context, c *Call) error { return c.shell.disconnect() }

func history(_ context.Context, c *Call) error {
	type entry struct {
		Number  int    `json:"number"`
		Command string `json:"command"`
	}
	now := len(c.shell.history) - 1
	var list []entry
	for i := max(0, now-10); i <= now; i++ {
		list = append(list, entry{i, c.shell.history[i]})
	}
	return c.Emit(map[string]any{"history": list}, func(w io.Writer) {
		for _, e := range list {
			fmt.Fprintf(w, "%d - %s\n", e.Number, e.Command)
		}
	})
}

func redo(ctx context.Context, c *Call) error {
	if len(c.Args) == 0 {
		return c.UsageError()
	}
	n, err := strconv.ParseInt(c.Args[0], 0, 32)
	now := len(c.shell.history) - 1
	if err != nil || n < 0 || int(n) >= now {
		return refuse("Command index out of range")
	}
	line := c.shell.history[n]
	words := terminal.Split(line)
	if words[0] == "redo" {
		return refuse("No redoing redos")
	}
	c.shell.history[now] = line
	return c.shell.Run(ctx, words)
}

func printWatches(_ context.Context, c *Call) error {
	if len(c.Args) > 0 {
		switch c.Args[0] {
		case "on", "off":
			c.shell.events.setPrinting(c.Args[0] == "on")
			return nil
		}
		return misuse("printwatches %s: want on or off", c.Args[0])
	}
	state := "off"
	if c.shell.events.printing() {
		state = "on"
	}
	return c.Emit(map[string]string{"printwatches": state}, func(w io.Writer) { fmt.Fprintln(w, "printwatches is "+state) })
}

func showVersion(_ context.Context, c *Call) error {
	return c.Emit(map[string]string{"version": c.shell.cfg.Version}, func(w io.Writer) {
		fmt.Fprintln(w, "ZooKeeper CLI version: "+c.shell.cfg.Version)
	})
}

func help(_ context.Context, c *Call) error {
	if len(c.Args) == 0 {
		return usage(c.Out)
	}
	command, ok := Find(c.Args[0])
	if !ok {
		return notFound(c.Args[0])
	}
	_, err := io.WriteString(c.Out, command.help())
	return err
}

// usage prints the list of commands.
func usage(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, command := range Commands() {
		fmt.Fprintf(table, "  %s\t%s\n", command.Name, command.Short)
	}
	table.Flush() //nolint:errcheck // writes to memory
	b.WriteString("\nUse help COMMAND or COMMAND -h to see the options of a command.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

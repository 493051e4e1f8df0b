package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// ensembleCommands returns the commands for the servers.
func ensembleCommands() []Command {
	return []Command{
		{
			Name: "config", Usage: "[-c] [-w] [-s]", Short: "print the servers of the ensemble", Run: showConfig,
			Options: []Option{{Name: "s", Long: "stat", Help: "Print znode stats additionally"}, {Name: "w", Help: "watch"}, {Name: "c", Help: "client connection string"}},
		},
		{
			Name: "reconfig", Verb: "reconfig", Short: "change the servers of the ensemble", Run: reconfig,
			Usage: "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | " +
				"[-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
			Options: []Option{
				{Name: "s", Long: "stat", Help: "Print znode stats additionally"},
				{Name: "v", Long: "version", Arg: "version", Help: "required current config version"},
				{Name: "file", Arg: "path", Help: "path of config file to parse for membership"},
				{Name: "members", Arg: "servers", Help: "comma-separated list of config strings for non-incremental reconfig"},
				{Name: "add", Arg: "servers", Help: "comma-separated list of config strings for new servers"},
				{Name: "remove", Arg: "ids", Help: "comma-separated list of server IDs to remove"},
			},
		},
	}
}

// configAnswer is the JSON form of the server list.
type configAnswer struct {
	Version string   `json:"version"`
	Servers []string `json:"servers"`
	Clients []string `json:"clients"`
	Stat    *Stat    `json:"stat,omitempty"`
}

func newConfigAnswer(c *Call, config client.Config) configAnswer {
	answer := configAnswer{Version: strconv.FormatInt(config.Version, 16), Servers: []string{}, Clients: append([]string{}, config.Clients...)}
	for line := range strings.Lines(config.Text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "server.") {
			answer.Servers = append(answer.Servers, line)
		}
	}
	if c.Has("s") {
		answer.Stat = NewStat(config.Stat)
	}
	return answer
}

func showConfig(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	var config client.Config
	if c.Has("w") {
		var w *client.Watch
		if config, w, err = zk.ConfigW(ctx); err == nil {
			c.shell.remember(dataWatch, client.ConfigPath, w)
		}
	} else {
		config, err = zk.Config(ctx)
	}
	if err != nil {
		return err
	}
	return c.Emit(newConfigAnswer(c, config), func(w io.Writer) {
		if c.Has("c") {
			fmt.Fprintln(w, clientLine(config.Text))
		} else {
			fmt.Fprintln(w, config.Text)
		}
		if c.Has("s") {
			printStat(w, c.Term, config.Stat)
		}
	})
}

// clientLine returns the version and the client addresses in a configuration.
func clientLine(config string) string {
	version := ""
	var addresses []string
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case key == "version":
			version = value
		case strings.HasPrefix(key, "server."):
			_, address, ok := strings.Cut(value, ";")
			if ok && !strings.Contains(address, ":") {
				address = "0.0.0.0:" + address
			}
			addresses = append(addresses, address)
		}
	}
	return version + " " + strings.Join(addresses, ",")
}

func reconfig(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	wholly, partly := c.Has("file") || c.Has("members"), c.Has("add") || c.Has("remove")
	if !wholly && !partly {
		return c.UsageError()
	}
	change := client.Reconfiguration{Version: -1}
	if c.Has("v") {
		if change.Version, err = strconv.ParseInt(c.Value("v"), 16, 64); err != nil {
			return misuse("-v must be followed by a long (configuration version)")
		}
	}
	switch {
	case wholly && partly:
		return misuse("Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)")
	case c.Has("file") && c.Has("members"):
		return misuse("Can't use -file and -members together (conflicting non-incremental modes)")
	}
	change.Joining, change.Leaving, change.Members = servers(c.Values("add")), servers(c.Values("remove")), servers(c.Values("members"))
	if c.Has("file") {
		text, err := c.configuration(c.Value("file"))
		if exit := (*Exit)(nil); errors.As(err, &exit) {
			return err
		}
		if err == nil {
			change.Members, err = membersOf(c.Value("file"), text)
		}
		if err != nil {
			return refuse("Error processing " + c.Value("file") + ": " + err.Error())
		}
	}
	config, err := zk.Reconfig(ctx, change)
	if err != nil {
		return err
	}
	return c.Emit(newConfigAnswer(c, config), func(w io.Writer) {
		fmt.Fprintf(w, "Committed new configuration:\n%s\n", config.Text)
		if c.Has("s") {
			printStat(w, c.Term, config.Stat)
		}
	})
}

// servers splits lists at commas.
func servers(lists []string) (all []string) {
	for _, list := range lists {
		all = append(all, strings.Split(strings.ToLower(list), ",")...)
	}
	return all
}

// maxConfiguration is the size in bytes of the largest configuration file that is read.
const maxConfiguration = 16 << 20

// configuration reads a configuration file, which may be a pipe; "-" means the standard
// input.
func (c *Call) configuration(name string) (string, error) {
	var from io.Reader
	if name == "-" {
		in, err := c.input()
		if err != nil {
			return "", misuse("%s: %v", c.command.Name, err)
		}
		from = in
	} else {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxConfiguration+1))
	if err == nil && len(text) > maxConfiguration {
		err = fmt.Errorf("it is larger than %d MiB", maxConfiguration>>20)
	}
	return string(text), err
}

// membersOf returns the server lines of a configuration.
func membersOf(name, text string) ([]string, error) {
	list, err := zoocfg.ParseMembership(name, text)
	if err != nil {
		return nil, err
	}
	var members []string
	for _, s := range list.Servers {
		members = append(members, s.Line())
	}
	return members, nil
}

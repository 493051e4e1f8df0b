package main

import (
	"os"
	"path/filepath"
	"strings"
)

// byName maps the names of ZooKeeper's scripts to commands. In our image, which has no
// shell, zkCli.sh and zkServer.sh are links to this program. A user that overrides the
// command of ZooKeeper's image passes the script's name to it.
func byName(program string, args []string, getenv func(string) string) ([]string, error) {
	name := filepath.Base(program)
	if len(args) > 0 && (args[0] == "zkServer.sh" || args[0] == "zkCli.sh") {
		name, args = args[0], args[1:]
	}
	switch name {
	case "zkCli.sh":
		return append([]string{"cli"}, args...), nil
	case "zkServer.sh":
		return zkServer(args, getenv)
	}
	return args, nil
}

// zkServer maps the arguments of zkServer.sh,
//
//	[--config DIR] COMMAND [zoo.cfg]
//
// to a command. As in the script, a zoo.cfg without a slash is in DIR. We pass further
// arguments to the command.
func zkServer(args []string, getenv func(string) string) ([]string, error) {
	dir := confDir(getenv)
	if len(args) > 1 && args[0] == "--config" {
		dir, args = args[1], args[2:]
	}
	commands := map[string]string{"start-foreground": "container", "status": "health", "version": "version"}
	if len(args) == 0 || commands[args[0]] == "" {
		return nil, zkServerUsage(args)
	}
	command, args := commands[args[0]], args[1:]
	if command == "version" {
		return []string{command}, nil // with a zoo.cfg or without
	}
	config := getenv("ZOOCFG")
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		config, args = args[0], args[1:]
	}
	switch {
	case config == "":
		config = filepath.Join(dir, "zoo.cfg")
	case !strings.Contains(config, "/"):
		config = filepath.Join(dir, config)
	}
	return append([]string{command, config}, args...), nil
}

// zkServerUsage returns the error for arguments that name no command. The script has more
// commands: they start a process in the background, or need it.
func zkServerUsage(args []string) error {
	const usage = "Usage: zkServer.sh [--config <conf-dir>] {start-foreground|status|version} [zoo.cfg]"
	if len(args) == 0 {
		return usagef(usage)
	}
	return usagef("zkServer.sh %s: not supported, because the server runs in the foreground here\n%s", args[0], usage)
}

// confDir returns the directory of zoo.cfg in a container.
func confDir(getenv func(string) string) string {
	for _, name := range []string{"ZOOCFGDIR", "ZOO_CONF_DIR"} {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	return "/conf"
}

// commandLine returns the arguments of this process.
func commandLine() ([]string, error) { return byName(os.Args[0], os.Args[1:], os.Getenv) }

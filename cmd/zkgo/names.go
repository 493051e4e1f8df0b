package main

import (
	"os"
	"path/filepath"
)

// byName maps the names of ZooKeeper's scripts to commands. In an image without a
// shell, zkCli.sh and zkServer.sh are links to this program, and a user who overrides
// the command of ZooKeeper's image passes the script's name to it.
func byName(program string, args []string, getenv func(string) string) []string {
	name := filepath.Base(program)
	if len(args) > 0 && (args[0] == "zkServer.sh" || args[0] == "zkCli.sh") {
		name, args = args[0], args[1:]
	}
	switch name {
	case "zkCli.sh":
		return append([]string{"cli"}, args...)
	case "zkServer.sh":
		if len(args) == 0 {
			return args
		}
		switch args[0] {
		case "start-foreground":
			return []string{"container"}
		case "status":
			return []string{"health", filepath.Join(confDir(getenv), "zoo.cfg")}
		}
	}
	return args
}

// confDir returns the directory of zoo.cfg in a container.
func confDir(getenv func(string) string) string {
	if dir := getenv("ZOO_CONF_DIR"); dir != "" {
		return dir
	}
	return "/conf"
}

// commandLine returns the arguments of this process.
func commandLine() []string { return byName(os.Args[0], os.Args[1:], os.Getenv) }

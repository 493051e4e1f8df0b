package container

import (
	"fmt"
	"slices"
	"strings"
)

// property is one of ZooKeeper's system properties, as a key of zoo.cfg.
type property struct {
	key, value string
	prefixed   bool // whether its name begins with "zookeeper."
}

// unprefixed lists the system properties that ZooKeeper reads without the prefix
// "zookeeper.". A dot at the end stands for all names that begin so.
var unprefixed = [...]string{ //nolint:gochecknoglobals // a constant table
	"jute.maxbuffer", "znode.container.", "java.security.auth.login.config", "readonlymode.enabled",
	"fsync.warningthresholdms", "leader.nodelay", "follower.nodelay",
}

// jvmFlags returns the system properties in a JVM's flags that mean something to a
// ZooKeeper server, and the names of the other flags that may matter to an operator:
// system properties and agents. Flags for the heap, for garbage collection and for JMX
// are in neither. The server's scripts split the flags at spaces, too
// (server_flags in deploy/bin/zkEnv.sh has the same rules).
func jvmFlags(flags string) (properties []property, unused []string) {
	for _, flag := range strings.Fields(flags) {
		definition, defines := strings.CutPrefix(flag, "-D")
		name, value, _ := strings.Cut(definition, "=")
		key, prefixed := strings.CutPrefix(name, "zookeeper.")
		switch {
		case !defines && (strings.HasPrefix(flag, "-javaagent") || strings.HasPrefix(flag, "-agent") || strings.HasPrefix(flag, "@")):
			if end := strings.IndexAny(flag, ":="); end >= 0 {
				flag = flag[:end]
			}
			unused = append(unused, flag)
		case !defines, strings.HasPrefix(name, "com.sun.management."), strings.HasPrefix(name, "java.rmi."):
		case prefixed, isUnprefixed(name):
			properties = append(properties, property{key, value, prefixed})
		default:
			unused = append(unused, name)
		}
	}
	return properties, unused
}

func isUnprefixed(name string) bool {
	return slices.ContainsFunc(unprefixed[:], func(known string) bool {
		return name == known || strings.HasSuffix(known, ".") && strings.HasPrefix(name, known)
	})
}

// Settings returns the keys and values that apply in addition to zoo.cfg, from
// SERVER_JVMFLAGS, JVMFLAGS and ZOO_DATADIR_AUTOCREATE_DISABLE. As in ZooKeeper, a line
// of the file overrides a property zookeeper.KEY. The warnings name the flags without an
// effect. Values aren't in them, because they may be passwords.
func (p Plan) Settings() (settings [][2]string, warnings []string, err error) {
	text, err := p.Read(p.ConfigPath)
	if err != nil {
		return nil, nil, err
	}
	lines := keysOf(string(text))
	for _, f := range p.properties {
		line, found := lines[f.key]
		switch {
		case !f.prefixed || !found:
			settings = append(settings, [2]string{f.key, f.value})
		case line != f.value:
			warnings = append(warnings, fmt.Sprintf("-Dzookeeper.%s has no effect: %s sets %s", f.key, p.ConfigPath, f.key))
		}
	}
	if p.keepDirs {
		settings = append(settings, [2]string{"datadir.autocreate", "false"})
	}
	if len(p.unused) > 0 {
		warnings = append(warnings, "JVM flags without effect here: "+strings.Join(p.unused, " "))
	}
	return settings, warnings, nil
}

// keysOf returns the keys that a zoo.cfg sets, and their last values.
func keysOf(text string) map[string]string {
	keys := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		end := strings.IndexAny(line, "=: \t")
		if end < 0 {
			end = len(line)
		}
		keys[line[:end]] = strings.TrimSpace(strings.TrimLeft(line[end:], "=: \t"))
	}
	return keys
}

package zoocfg

import (
	"fmt"
	"slices"
	"strings"
)

// A systemProperty is one of ZooKeeper's system properties, as a key of zoo.cfg.
type systemProperty struct {
	key, value string
	prefixed   bool   // whether its name begins with "zookeeper."
	from       string // the variable that has it
}

// unprefixed lists the system properties that ZooKeeper reads without the prefix
// "zookeeper.". A dot at the end means all names with this prefix.
var unprefixed = [...]string{ //nolint:gochecknoglobals // a constant table
	"jute.maxbuffer", "znode.container.", "java.security.auth.login.config", "readonlymode.enabled",
	"fsync.warningthresholdms", "leader.nodelay", "follower.nodelay",
}

// WithJVMFlags applies ZooKeeper's system properties among a JVM's flags, after the lines
// of the file and before WithSet. As in ZooKeeper, a line of the file overrides a property
// zookeeper.KEY, and the last of several flags wins. Messages use from as the place, e.g.
// the variable SERVER_JVMFLAGS. A warning names the system properties and agents that have
// no effect, without their values, which may be passwords.
func WithJVMFlags(from, flags string) Option {
	return func(o *options) {
		properties, unused := jvmFlags(from, flags)
		o.properties = append(o.properties, properties...)
		if len(unused) > 0 {
			o.warnings = append(o.warnings, Warning{File: from, Msg: "JVM flags without effect here: " + strings.Join(unused, " ")})
		}
	}
}

// jvmFlags returns the system properties that mean something to a ZooKeeper server, and
// the names of the other flags that may matter to an operator: system properties and
// agents. Flags for the heap, for garbage collection and for JMX are in neither.
// ZooKeeper's scripts split the flags at spaces, too.
func jvmFlags(from, flags string) (properties []systemProperty, unused []string) {
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
			properties = append(properties, systemProperty{key, value, prefixed, from})
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

// NotSet returns the error of a key that another setting needs. It names all places for
// the key, because ZooKeeper's guide sets TLS and SASL by system properties.
func NotSet(key, why string) error {
	name := key
	if !isUnprefixed(key) {
		name = "zookeeper." + key
	}
	return fmt.Errorf("%s is not set: %s; set it in zoo.cfg, with --set, or as -D%s in SERVER_JVMFLAGS", key, why, name)
}

// applyProperties applies the system properties that no line of the file and no later
// property overrides.
func (c *Config) applyProperties(all []systemProperty, errs *problems) {
	lines := c.rawValues()
	for i, p := range all {
		line, overridden := lines[p.key]
		switch {
		case slices.ContainsFunc(all[i+1:], func(later systemProperty) bool {
			return later.key == p.key && later.prefixed == p.prefixed
		}):
		case !p.prefixed || !overridden:
			errs.add(c.apply(property{key: p.key, value: p.value}, p.from))
		case line != p.value:
			c.Warnings = appendNew(c.Warnings, Warning{File: p.from, Key: p.key, Msg: "-Dzookeeper." + p.key + " has no effect: " + c.Path + " sets the key"})
		}
	}
}

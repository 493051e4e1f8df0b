// Package container converts the environment variables of ZooKeeper's official container
// image to the files that the image's entrypoint writes: zoo.cfg and myid. Our image has no
// shell, so we need a program for this.
//
// Rules:
//
//   - The same variables produce the same bytes as the entrypoint of the ZooKeeper 3.9.5
//     image (testdata/entrypoint was recorded from it), even for invalid values: the
//     server reports those when it reads the file.
//   - We never change existing files.
//   - We reject a word in ZOO_SERVERS that isn't a member. The entrypoint would write it to
//     the file, where the server would mistake it for an unknown key and run standalone.
//   - We read the environment only from the caller's list.
//
// It imports internal/zoocfg and internal/smallfile.
package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// Plan contains the files to write.
type Plan struct {
	ConfigPath string // zoo.cfg
	Config     string // its text, used only if the file doesn't exist
	MyIDPath   string
	MyID       string // without the newline

	// Unknown lists the variables ZOO_* that have no meaning.
	Unknown []string

	servers         []string // the words of ZOO_SERVERS
	dataDir, logDir string
	keepDirs        bool // ZOO_DATADIR_AUTOCREATE_DISABLE: don't create the directories
	given           bool // the caller named ConfigPath, so it must exist
}

// defaults are the values in the official image.
var defaults = map[string]string{ //nolint:gochecknoglobals // a constant table
	"ZOO_CONF_DIR":                  "/conf",
	"ZOO_DATA_DIR":                  "/data",
	"ZOO_DATA_LOG_DIR":              "/datalog",
	"ZOO_TICK_TIME":                 "2000",
	"ZOO_INIT_LIMIT":                "5",
	"ZOO_SYNC_LIMIT":                "2",
	"ZOO_AUTOPURGE_PURGEINTERVAL":   "0",
	"ZOO_AUTOPURGE_SNAPRETAINCOUNT": "3",
	"ZOO_MAX_CLIENT_CNXNS":          "60",
	"ZOO_STANDALONE_ENABLED":        "true",
	"ZOO_ADMINSERVER_ENABLED":       "true",
}

// lines lists the keys that are always written to zoo.cfg, in the entrypoint's order.
var lines = [...]struct{ key, variable string }{ //nolint:gochecknoglobals // a constant table
	{"dataDir", "ZOO_DATA_DIR"},
	{"dataLogDir", "ZOO_DATA_LOG_DIR"},
	{"tickTime", "ZOO_TICK_TIME"},
	{"initLimit", "ZOO_INIT_LIMIT"},
	{"syncLimit", "ZOO_SYNC_LIMIT"},
	{"autopurge.snapRetainCount", "ZOO_AUTOPURGE_SNAPRETAINCOUNT"},
	{"autopurge.purgeInterval", "ZOO_AUTOPURGE_PURGEINTERVAL"},
	{"maxClientCnxns", "ZOO_MAX_CLIENT_CNXNS"},
	{"standaloneEnabled", "ZOO_STANDALONE_ENABLED"},
	{"admin.enableServer", "ZOO_ADMINSERVER_ENABLED"},
}

// without lists the variables that have no default, and the variables of ZooKeeper's image and
// scripts that don't change the files.
var without = [...]string{ //nolint:gochecknoglobals // a constant table
	"ZOO_MY_ID", "ZOO_SERVERS", "ZOO_4LW_COMMANDS_WHITELIST", "ZOO_CFG_EXTRA", "ZOO_DATADIR_AUTOCREATE_DISABLE",
	"ZOO_LOG_DIR", "ZOO_LOG4J_PROP", "ZOO_NOEXEC",
}

// Variables returns the names of all known variables.
func Variables() []string {
	return slices.AppendSeq(slices.Concat(without[:], loginVariables()), maps.Keys(defaults))
}

// alone is the server list if ZOO_SERVERS isn't set.
const alone = "server.1=localhost:2888:3888;2181"

// FromEnvironment builds a Plan from the variables, each of the form NAME=value. It doesn't
// access any file.
func FromEnvironment(environ []string) Plan {
	set := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		set[name] = value
	}
	value := func(name string) string {
		if v, ok := set[name]; ok {
			return v
		}
		return defaults[name]
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s=%s\n", l.key, value(l.variable))
	}
	servers := value("ZOO_SERVERS")
	if servers == "" {
		servers = alone
	}
	writeWords(&b, servers)
	if list := value("ZOO_4LW_COMMANDS_WHITELIST"); list != "" {
		fmt.Fprintf(&b, "4lw.commands.whitelist=%s\n", list)
	}
	writeWords(&b, value("ZOO_CFG_EXTRA"))
	id := value("ZOO_MY_ID")
	if id == "" {
		id = "1"
	}
	dir := value("ZOO_DATA_DIR")
	return Plan{
		ConfigPath: filepath.Join(value("ZOO_CONF_DIR"), "zoo.cfg"), Config: b.String(),
		MyIDPath: filepath.Join(dir, "myid"), MyID: id,
		dataDir: dir, logDir: value("ZOO_DATA_LOG_DIR"), keepDirs: value("ZOO_DATADIR_AUTOCREATE_DISABLE") != "",
		Unknown: unknown(set), servers: words(servers),
	}
}

// unknown returns the names ZOO_* that we don't know.
func unknown(set map[string]string) (names []string) {
	known := Variables()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if strings.HasPrefix(name, "ZOO_") && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}

// words returns the words of a variable, split as a shell does.
func words(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
}

// writeWords writes one line for each word of a variable.
func writeWords(b *strings.Builder, value string) {
	for _, word := range words(value) {
		b.WriteString(word + "\n")
	}
}

// Adding returns the plan with more lines at the end of zoo.cfg, e.g. from a mounted file. The last
// line of a key counts.
func (p Plan) Adding(lines string) Plan {
	if !p.given && lines != "" {
		p.Config += strings.TrimRight(lines, "\n") + "\n"
	}
	return p
}

// With returns the plan for a server with this configuration file instead of the one that
// the entrypoint writes. Such a file must exist.
func (p Plan) With(config string) Plan {
	if filepath.Clean(config) != p.ConfigPath {
		p.ConfigPath, p.Config, p.given = config, "", true
	}
	return p
}

// member matches a line that belongs to the list of servers.
var member = regexp.MustCompile(`^(server|group|weight)\.[0-9]+=.`)

// Check returns an error for every word in ZOO_SERVERS that is no member, if the variables
// are used.
func (p Plan) Check() error {
	if p.given {
		return nil
	}
	if _, err := os.Stat(p.ConfigPath); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, word := range p.servers {
		if !member.MatchString(word) {
			errs = append(errs, fmt.Errorf("ZOO_SERVERS: %q is not a server: want server.N=host:port:port;clientPort, separated by spaces", word))
		}
	}
	return errors.Join(errs...)
}

// IDOfHostname returns the server id of a StatefulSet's pod: its ordinal, i.e. the
// number after the last dash of its name, plus one.
func IDOfHostname(hostname string) (string, error) {
	_, ordinal, found := cutLast(hostname, "-")
	n, err := strconv.ParseUint(ordinal, 10, 8)
	if !found || err != nil {
		return "", fmt.Errorf("the host name %q does not end in a dash and a number below 255: it gives no server id", hostname)
	}
	return strconv.FormatUint(n+1, 10), nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Read returns the content that a file will have after Write, which writes it only if it
// doesn't exist. Callers should use it to check the configuration before the first write.
func (p Plan) Read(path string) ([]byte, error) {
	data, err := smallfile.Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	switch path = filepath.Clean(path); {
	case path == p.ConfigPath && !p.given:
		return []byte(p.Config), nil
	case path == p.MyIDPath:
		return []byte(p.MyID + "\n"), nil
	}
	return data, err
}

// Write writes the missing files. The notes list the variables that had no effect because a
// file exists.
func (p Plan) Write() (notes []string, err error) {
	var dirs []string
	if !p.given {
		dirs = append(dirs, filepath.Dir(p.ConfigPath))
	}
	if !p.keepDirs {
		dirs = append(dirs, p.dataDir, p.logDir)
	}
	for _, dir := range dirs {
		if dir == "" { // the server rejects and reports the line
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return notes, err
		}
	}
	there := p.given
	if !there {
		if there, err = writeMissing(p.ConfigPath, p.Config); err != nil {
			return notes, fmt.Errorf("%w; mount a volume at %s that this user can write to, or a zoo.cfg as %s", err, filepath.Dir(p.ConfigPath), p.ConfigPath)
		}
	}
	if there {
		notes = append(notes, p.ConfigPath+" already exists: the ZOO_ variables change nothing")
	}
	if there, err = writeMissing(p.MyIDPath, p.MyID+"\n"); err != nil {
		return notes, err
	}
	if there {
		old, err := smallfile.Read(p.MyIDPath)
		if err != nil {
			return notes, err
		}
		if have := strings.TrimSpace(string(old)); have != p.MyID {
			notes = append(notes, fmt.Sprintf("%s already exists, with the id %s: ZOO_MY_ID would be %s", p.MyIDPath, have, p.MyID))
		}
	}
	return notes, nil
}

// writeMissing writes a file unless it exists.
func writeMissing(path, text string) (there bool, err error) {
	switch _, err := os.Stat(path); {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	return false, zoocfg.WriteFile(path, []byte(text))
}

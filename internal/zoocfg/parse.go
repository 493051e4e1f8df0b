package zoocfg

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// An Option changes how a configuration is read.
type Option func(*options)

// LoadOption marks an option of server.LoadConfig.
func (Option) LoadOption() {}

type options struct {
	myID       *uint64
	readFile   func(path string) ([]byte, error)
	properties []systemProperty
	sets       [][2]string
	warnings   []Warning
	parsed     *Config
}

// WithMyID sets the server's id. The myid file isn't read then.
func WithMyID(id uint64) Option { return func(o *options) { o.myID = &id } }

// WithReadFile replaces the file system for all files that are read.
func WithReadFile(read func(path string) ([]byte, error)) Option {
	return func(o *options) { o.readFile = read }
}

// Parsed makes [Parse] return z instead of reading a file.
func Parsed(z *Config) Option { return func(o *options) { o.parsed = z } }

// WithSet sets a key after the lines of the file and before the checks across keys,
// so that a flag can complete or override the file.
func WithSet(key, value string) Option {
	return func(o *options) { o.sets = append(o.sets, [2]string{key, value}) }
}

// Parse reads a configuration file, the dynamic file it names, and myid. Its error
// joins an [Error] for every invalid line and every violated rule. It is a [Refused] if
// there are warnings too.
func Parse(path string, opts ...Option) (*Config, error) {
	o := gather(opts)
	if o.parsed != nil {
		return o.parsed, nil
	}
	text, err := o.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: path, Msg: "file is missing", Err: err}
	case err != nil:
		return nil, &Error{File: path, Msg: err.Error(), Err: err}
	}
	return load(path, string(text), o)
}

// ParseText is Parse for a text in memory; messages use name as the file name. It
// reads the dynamic file that the text names, and myid, from disk.
func ParseText(name, text string, opts ...Option) (*Config, error) {
	return load(name, text, gather(opts))
}

// NoFile returns the configuration of [Default] with the options applied.
func NoFile(opts ...Option) (*Config, error) {
	return Default().complete(nil, gather(opts))
}

func gather(opts []Option) options {
	o := options{readFile: blank().readFile}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func load(path, text string, o options) (*Config, error) {
	props, err := properties(text)
	if err != nil {
		return nil, inFile(err, path)
	}
	c := blank()
	c.Path, c.Text = path, text
	return c.complete(props, o)
}

// complete applies the lines of the file and the options, and validates the result.
func (c *Config) complete(props []property, o options) (*Config, error) {
	c.readFile, c.Warnings = o.readFile, slices.Clone(o.warnings)
	if o.myID != nil {
		c.MyID, c.HasMyID = *o.myID, true
	}
	var errs problems
	c.applyStatic(props, &errs)
	c.applyProperties(o.properties, &errs)
	for _, s := range o.sets {
		errs.add(c.Set(s[0], s[1]))
	}
	c.validate(&errs)
	if err := errs.join(); err != nil {
		return nil, c.refused(err)
	}
	return c, nil
}

func inFile(err error, path string) error {
	var e *Error
	if errors.As(err, &e) {
		e.File = path
	}
	return err
}

var errBlank = errors.New("zoocfg: the configuration comes neither from Parse nor from Default")

// setByHand is the origin of keys set by Set.
const setByHand = "--set"

// Set changes one key as a line in the file would, with the same keys, values and
// errors. Validate does the checks across keys.
func (c *Config) Set(key, value string) error {
	if c.origin == nil {
		return errBlank
	}
	return c.apply(property{key: key, value: value}, setByHand)
}

// applyStatic applies the lines of the main configuration file.
func (c *Config) applyStatic(props []property, errs *problems) {
	props = c.lastOfEach(props)
	for _, p := range props {
		if p.key == "dynamicConfigFile" {
			c.origin[p.key] = origin{c.Path, p.line}
		}
	}
	for _, p := range props {
		errs.add(c.apply(p, c.Path))
	}
}

// lastOfEach drops the lines that a later line with the same key overrides.
func (c *Config) lastOfEach(props []property) []property {
	last := map[string]int{}
	for i, p := range props {
		last[p.key] = i
	}
	var kept []property
	for i, p := range props {
		if n := last[p.key]; n != i {
			c.Warnings = appendNew(c.Warnings, Warning{File: c.Path, Line: p.line, Key: p.key,
				Msg: "has no effect, line " + itoa(props[n].line) + " sets the key again"})
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// noComment is the advice about a value that looks as if a comment followed it.
const noComment = "a comment must be on a separate line"

// apply applies one line, as in the loop of QuorumPeerConfig.parseProperties.
func (c *Config) apply(p property, file string) error {
	name, value := trim(p.key), trim(p.value)
	was, had := c.origin[name]
	c.origin[name] = origin{file, p.line}
	err := c.dispatch(name, value, p.value)
	comment := strings.Contains(value, " #")
	if err != nil && comment {
		err = fmt.Errorf("%w; %s", err, noComment)
	}
	if err != nil {
		failed := c.fail(name, err)
		delete(c.origin, name)
		if had {
			c.origin[name] = was
		}
		return failed
	}
	if p.eightBit {
		c.warn(name, "", "has characters outside of ASCII, which are read as ISO-8859-1, as in ZooKeeper: write \\uXXXX")
	}
	if p.backslash {
		c.warn(name, "", `a \ is an escape character and was dropped: the value is %s; write \\ or /`, value)
	}
	if comment {
		c.warn(name, "", "the value is %q: %s", value, noComment)
	}
	return nil
}

// dispatch applies a value according to the type of its key.
func (c *Config) dispatch(name, value, raw string) error {
	k, known := knownKeys[name]
	switch {
	case isMember(name):
		if c.isSet("dynamicConfigFile") {
			return errors.New("parameter: " + name + " must be in a separate dynamic config file")
		}
		return c.setMember(name, raw)
	case known && k.set.set != nil:
		if k.ignored {
			c.ignore(name)
		}
		return k.set.set(c, value)
	case known:
		c.ignore(name)
	case strings.HasPrefix(name, metricsPrefix):
		c.ignore(name)
		return unknownMetricsKey(name)
	case strings.HasPrefix(name, authProviderPrefix):
		c.setAuthProvider(name, value)
	case name == "version":
		return c.setVersion(raw)
	case name == "oraclePath":
		c.ignore(name)
		c.warn(name, "", "oracles are not supported: with two servers, both are needed for a majority")
	default:
		c.warnUnknown(name)
	}
	return nil
}

func (c *Config) ignore(name string) {
	for _, have := range c.Ignored {
		if have == name {
			return
		}
	}
	c.Ignored = append(c.Ignored, name)
}

// missing reports whether err means that there is no such regular file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR)
}

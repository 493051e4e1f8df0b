package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// parser reads arguments by the rules of zkCli.sh's library: options stand
// anywhere, letters can be joined, the argument of an option may be joined to its
// letter or come behind "=", and "--" ends them.
type parser struct {
	command string
	known   []Option
	args    []string
	found   map[string][]string
	wants   string // an option that waits for its argument
	groups  map[string]string
	// literal is the index in args of the first one after "--".
	literal int
}

// errHelp is how -h and --help end the reading of options.
var errHelp = errors.New("help is wanted")

// parseOptions splits arguments into those of options and the rest. Its error is
// errHelp if -h or --help is among them.
func parseOptions(command *Command, args []string) (*parser, error) {
	p := &parser{command: command.Name, known: command.Options, found: map[string][]string{}, groups: map[string]string{}, literal: -1}
	for i, arg := range args {
		if arg == "--" {
			p.literal = len(p.args)
			p.args = append(p.args, args[i+1:]...)
			break
		}
		if err := p.token(arg); err != nil {
			return nil, err
		}
	}
	if p.wants != "" {
		return nil, p.missing()
	}
	if command.Required != "" && p.groups[command.Required] == "" {
		return nil, p.missingGroup(command.Required)
	}
	if p.literal < 0 {
		p.literal = len(p.args)
	}
	return p, nil
}

func (p *parser) token(arg string) error {
	switch {
	case p.wants != "" && p.isArgument(arg):
		p.value(arg)
		return nil
	case len(arg) < 2 || arg[0] != '-':
		p.args = append(p.args, arg)
		return nil
	}
	if arg == "--help" || arg == "-h" && p.option("h") == nil {
		return errHelp
	}
	if strings.HasPrefix(arg, "--") {
		// Two hyphens are taken for a name of several letters, as is usual elsewhere.
		name, _, _ := strings.Cut(arg[2:], "=")
		if len(name) < 2 || p.option(name) == nil {
			return p.unknown(arg)
		}
		arg = arg[1:]
	}
	name, value, assigned := strings.Cut(arg[1:], "=")
	switch o := p.option(name); {
	case o != nil && !assigned:
		return p.begin(o)
	case o != nil && o.Arg != "":
		if err := p.begin(o); err != nil {
			return err
		}
		p.value(value)
		return nil
	case assigned:
		return p.unknown(arg)
	}
	return p.letters(arg)
}

// letters reads options of one letter that were joined, the last one perhaps with
// its argument.
func (p *parser) letters(arg string) error {
	for i, letter := range arg[1:] {
		o := p.option(string(letter))
		if o == nil {
			return p.unknown(arg)
		}
		if err := p.begin(o); err != nil {
			return err
		}
		behind := arg[1+i+len(string(letter)):]
		if p.wants != "" && behind != "" {
			p.value(behind)
			return nil
		}
	}
	return nil
}

// begin takes an option; its argument, if it has one, is the next.
func (p *parser) begin(o *Option) error {
	if p.wants != "" {
		return p.missing()
	}
	if o.Group != "" {
		if other := p.groups[o.Group]; other != "" && other != o.Name {
			return misuse("The option '%s' was specified but an option from this group has already been selected: '%s'", o.Name, other)
		}
		p.groups[o.Group] = o.Name
	}
	if o.Arg != "" {
		p.wants = o.Name
		return nil
	}
	p.found[o.Name] = append(p.found[o.Name], "")
	return nil
}

func (p *parser) value(v string) {
	if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' && !strings.Contains(v[1:len(v)-1], `"`) {
		v = v[1 : len(v)-1]
	}
	p.found[p.wants] = append(p.found[p.wants], v)
	p.wants = ""
}

// isArgument reports whether an option can have this as its argument: everything
// that is no option itself, and negative numbers.
func (p *parser) isArgument(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return true
	}
	if _, err := strconv.ParseFloat(arg, 64); err == nil {
		return true
	}
	name, _, _ := strings.Cut(arg[1:], "=")
	return p.option(name) == nil && (name == "" || p.option(name[:1]) == nil)
}

func (p *parser) option(name string) *Option {
	i := slices.IndexFunc(p.known, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &p.known[i]
}

func (p *parser) missing() error { return misuse("Missing argument for option: %s", p.wants) }

func (p *parser) missingGroup(group string) error {
	var list []string
	for _, o := range p.known {
		if o.Group == group {
			list = append(list, "-"+o.Name+" "+o.Help)
		}
	}
	return misuse("Missing required option: [%s]", strings.Join(list, ", "))
}

// unknown refuses an option, in zkCli.sh's words, and names one that is like it.
func (p *parser) unknown(arg string) error {
	var names []string
	for _, o := range p.known {
		if len(o.Name) > 1 {
			names = append(names, o.Name)
		}
	}
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if near := Similar(name, names); near != "" {
		return misuse("Unrecognized option: %s. Did you mean -%s? See: help %s", arg, near, p.command)
	}
	return misuse("Unrecognized option: %s", arg)
}

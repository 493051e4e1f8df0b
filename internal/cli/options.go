package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/spelling"
)

// parser parses arguments by the rules of zkCli.sh's library: options may appear
// anywhere, letters can be joined, the argument of an option may follow its letter
// directly or after "=", and "--" ends the options.
type parser struct {
	command string
	known   []Option
	args    []string
	found   map[string][]string
	wants   string // an option that awaits its argument
	groups  map[string]string
	// literal is the index in args of the first argument after "--".
	literal int
}

// errHelp is the error for -h and --help.
var errHelp = errors.New("help requested")

// parseOptions splits args into options and the other arguments. It returns errHelp
// if args contain -h or --help.
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
		// We also accept two hyphens before a name of several letters, as is usual
		// elsewhere.
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

// letters parses joined options of one letter. The last one may be followed by its
// argument.
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

// begin adds an option. If it needs an argument, that is the next token.
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

// isArgument reports whether arg can be the argument of an option: anything that
// isn't an option itself, and negative numbers.
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
	i := slices.IndexFunc(p.known, func(o Option) bool { return o.Name == name || o.Long == name && name != "" })
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

// unknown returns zkCli.sh's error for an unknown option, and suggests a similar one.
func (p *parser) unknown(arg string) error {
	var names []string
	for _, o := range p.known {
		for _, name := range []string{o.Name, o.Long} {
			if len(name) > 1 {
				names = append(names, name)
			}
		}
	}
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if near := spelling.Similar(name, names); near != "" {
		return misuse("Unrecognized option: %s. Did you mean -%s? See: help %s", arg, near, p.command)
	}
	return misuse("Unrecognized option: %s", arg)
}

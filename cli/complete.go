package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/reeflective/readline"
)

// candidate is one way to go on with a line.
type candidate struct {
	Value string // the whole word
	Show  string // what is shown
	Help  string
}

// candidates returns how the last word of a line can go on: commands, options of
// the command, or paths of the live tree.
func (s *Shell) candidates(ctx context.Context, line string) []candidate {
	at := strings.LastIndexByte(line, ' ') + 1
	begun, before := line[at:], strings.Fields(line[:at])
	switch {
	case len(before) == 0:
		return completeCommand(begun)
	case before[0] == "help" && len(before) == 1:
		return completeCommand(begun)
	case strings.HasPrefix(begun, "-"):
		return completeOption(before[0], begun)
	case strings.HasPrefix(begun, "/"):
		return s.completePath(ctx, begun)
	}
	return nil
}

func completeCommand(begun string) (list []candidate) {
	for _, c := range Commands() {
		if strings.HasPrefix(c.Name, begun) {
			list = append(list, candidate{c.Name, c.Name, c.Short})
		}
	}
	return list
}

func completeOption(command, begun string) (list []candidate) {
	c, _ := Find(command)
	for _, o := range c.Options {
		if name := "-" + o.Name; strings.HasPrefix(name, begun) {
			list = append(list, candidate{name, name, o.Help})
		}
	}
	return list
}

// completePath lists the children of the znode that the path has got to. Nothing is
// said if it cannot: the line will say it.
func (s *Shell) completePath(ctx context.Context, begun string) (list []candidate) {
	zk, err := s.client()
	if err != nil || !zk.State().Connected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	slash := strings.LastIndexByte(begun, '/')
	parent := begun[:slash]
	if parent == "" {
		parent = "/"
	}
	names, _, err := zk.Children(ctx, parent)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, begun[slash+1:]) {
			list = append(list, candidate{joinPath(parent, name), name, ""})
		}
	}
	return list
}

// complete gives the candidates to the line editor.
func (s *Shell) complete(ctx context.Context, line string) readline.Completions {
	list := s.candidates(ctx, line)
	raw := make([]readline.Completion, len(list))
	paths := false
	for i, c := range list {
		raw[i] = readline.Completion{Value: c.Value, Display: c.Show, Description: c.Help}
		paths = paths || strings.HasPrefix(c.Value, "/")
	}
	done := readline.CompleteRaw(raw)
	if paths {
		return done.NoSpace('*')
	}
	return done
}

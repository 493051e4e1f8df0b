package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// completionTime is how long a server may take to list what a path can be completed
// with.
const completionTime = 2 * time.Second

// candidate is one way to go on with a line.
type candidate struct {
	Value string // the whole word
	Show  string // what is shown
	Help  string
}

// candidates returns how the last word of a line can go on: commands, options of
// the command, or paths of the live tree.
func (s *Shell) candidates(ctx context.Context, line string) []candidate {
	at, quote := lastWord(line)
	begun, before := line[at:], strings.Fields(line[:at])
	if quote != 0 {
		begun = begun[1:]
	}
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
			list = append(list, candidate{subtree.Join(parent, "/"+name), name, ""})
		}
	}
	return list
}

// complete goes on with the word before the cursor as far as all candidates agree,
// and lists them on w if there is nothing to add.
func (s *Shell) complete(ctx context.Context, w io.Writer, line string, at int) (string, int, bool) {
	list := s.candidates(ctx, line[:at])
	if len(list) == 0 {
		return line, at, true
	}
	common := list[0].Value
	for _, c := range list[1:] {
		common = commonPrefix(common, c.Value)
	}
	begin, quote := lastWord(line[:at])
	begun := line[begin:at]
	switch {
	case strings.HasPrefix(common, "/"):
		common = quoted(common, quote, len(list) == 1)
	case len(list) == 1:
		common += " "
	}
	if common == begun {
		s.listCandidates(w, list)
	}
	before := line[:at-len(begun)] + common
	return before + line[at:], len(before), true
}

// listCandidates shows what there is to choose from: with their help if they have
// one, else in columns.
func (s *Shell) listCandidates(w io.Writer, list []candidate) {
	names := make([]string, len(list))
	wide := 0
	for i, c := range list {
		names[i] = c.Show
		wide = max(wide, len(c.Show))
	}
	if len(list) == 1 {
		return
	}
	var b strings.Builder
	if list[0].Help == "" {
		printColumns(&b, s.cfg.Term, names)
	} else {
		for _, c := range list {
			fmt.Fprintf(&b, "%-*s  %s\n", wide, c.Show, s.cfg.Term.Paint(Faint, c.Help))
		}
	}
	_, _ = io.WriteString(w, b.String())
}

// commonPrefix returns what two texts begin with, in whole characters.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return a[:n]
}

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
	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// completionTime limits the time for a server to list completions of a path.
const completionTime = 2 * time.Second

// candidate is a possible completion.
type candidate struct {
	Value string // the complete word
	Show  string // the displayed text
	Help  string
}

// candidates returns the possible completions of a line's last word: commands,
// options of the command, or paths in the live tree.
func (s *Shell) candidates(ctx context.Context, line string) []candidate {
	at, quote := terminal.LastWord(line)
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

// completePath lists the children of the znode that the path has reached. We ignore errors,
// because running the line will report them.
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

// complete extends the word before the cursor by the common prefix of all candidates,
// and lists the candidates on w if that adds nothing.
func (s *Shell) complete(ctx context.Context, w io.Writer, line string, at int) (string, int, bool) {
	list := s.candidates(ctx, line[:at])
	if len(list) == 0 {
		return line, at, true
	}
	common := list[0].Value
	for _, c := range list[1:] {
		common = commonPrefix(common, c.Value)
	}
	begin, quote := terminal.LastWord(line[:at])
	begun := line[begin:at]
	switch {
	case strings.HasPrefix(common, "/"):
		common = terminal.Quote(common, quote, len(list) == 1)
	case len(list) == 1:
		common += " "
	}
	if common == begun {
		s.listCandidates(w, list)
	}
	before := line[:at-len(begun)] + common
	return before + line[at:], len(before), true
}

// listCandidates lists the candidates with their help if they have one, otherwise in
// columns.
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
			fmt.Fprintf(&b, "%-*s  %s\n", wide, c.Show, s.cfg.Term.Paint(terminal.Faint, c.Help))
		}
	}
	_, _ = io.WriteString(w, b.String())
}

// commonPrefix returns the common prefix of two texts, in whole characters.
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

// CompletePath opens a session and returns the paths that begin with begun. It waits at most two
// seconds, and returns nothing if there is no answer. Whole means that the word is complete: there
// is one path, and it has no children.
func CompletePath(ctx context.Context, config Config, begun string) (paths []string, whole bool) {
	if begun == "" {
		begun = "/"
	}
	if begun[0] != '/' {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	config.Out, config.Err, config.Quiet = io.Discard, io.Discard, true
	shell := New(config)
	defer shell.Close() //nolint:errcheck // the session ends by itself otherwise
	if shell.Connect(config.Server) != nil || shell.Await(ctx) != nil {
		return nil, true
	}
	for _, c := range shell.completePath(ctx, begun) {
		paths = append(paths, c.Value)
	}
	if len(paths) != 1 {
		return paths, len(paths) == 0
	}
	stat, found, err := shell.exists(ctx, paths[0], false)
	if err != nil || !found || stat.NumChildren == 0 {
		return paths, true
	}
	return []string{paths[0] + "/"}, false
}

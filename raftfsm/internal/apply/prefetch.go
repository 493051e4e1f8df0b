package apply

import (
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/tree"
)

// decode decodes some of the n commands at the start of b and prefetches their znodes. It
// returns the commands and the bytes after them. After an error, it returns the commands
// before the one that doesn't decode. The caller holds the tree's lock.
func (s *scratch) decode(t *tree.Tree, b []byte, n int) (some []command.Command, rest []byte, err error) {
	var room [tree.PrefetchMax]string
	paths := room[:0]
	some = s.commands[:min(n, len(s.commands))]
	for i := range some {
		rest, err := some[i].Decode(b)
		if err != nil {
			some = some[:i]
			return some, b, err
		}
		if b = rest; some[i].Path() != "" {
			paths = append(paths, some[i].Path())
		}
	}
	if len(paths) > 1 {
		t.Prefetch(paths)
	}
	return some, b, nil
}

// forget forgets n commands, which keep log entries and waiters alive.
func (s *scratch) forget(n int) {
	for i := range min(n, len(s.commands)) {
		c := &s.commands[i]
		clear(c.IDs[:cap(c.IDs)])
		*c = command.Command{IDs: c.IDs[:0], Prints: c.Prints[:0]}
	}
}

package subtree

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// Sequence says that a parent numbers its sequential children below what some of
// its children have: the next creations of a sequential znode can be refused
// because the name is taken, or a newer znode can get a lower number than an older
// one. A server takes the number from how many children were ever created in the
// parent, and nobody can set that.
type Sequence struct {
	Path string `json:"path"`
	// Next is the number that the next sequential child gets.
	Next int64 `json:"next"`
	// Highest is the highest number that a child has.
	Highest int64 `json:"highest"`
}

// digits is the length of the number that a server appends.
const digits = 10

// number remembers the number in the name of a znode that is created.
func (a *applier) number(path string) {
	name := proto.Base(path)
	if len(name) < digits {
		return
	}
	n, err := strconv.ParseInt(name[len(name)-digits:], 10, 64)
	if err != nil || n < 0 {
		return
	}
	parent := proto.Parent(path)
	if highest, ok := a.highest[parent]; !ok || n > highest {
		a.highest[parent] = n
	}
}

// sequences looks for parents that number too low.
func (a *applier) sequences(ctx context.Context) ([]Sequence, error) {
	if a.o.DryRun {
		return nil, nil
	}
	var low []Sequence
	for parent, highest := range a.highest {
		st, found, err := a.c.Exists(ctx, parent)
		if err != nil {
			return nil, err
		}
		if next := nextNumber(st); found && next <= highest {
			low = append(low, Sequence{Path: parent, Next: next, Highest: highest})
		}
	}
	slices.SortFunc(low, func(x, y Sequence) int { return cmp.Compare(x.Path, y.Path) })
	return low, nil
}

// nextNumber is how many children were created in a znode. What a client sees as
// cversion counts deletions too.
func nextNumber(st client.Stat) int64 {
	return (int64(st.Cversion) + int64(st.NumChildren)) / 2
}

package subtree

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// Sequence describes a parent with children that have its next sequence number or a higher one. The
// next creations of sequential znodes may fail because the name exists, or a newer znode may
// receive a lower number than an older one. A server derives the number from how many children were
// ever created in the parent. A client can't set it, so we can only report the problem.
type Sequence struct {
	Path string `json:"path"`
	// Next is the number of the next sequential child.
	Next int64 `json:"next"`
	// Highest is the highest number of an existing child.
	Highest int64 `json:"highest"`
}

// digits is the length of the number that a server appends.
const digits = 10

// number records the number in the name of a created znode.
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

// sequences returns the parents with a next number that is too low.
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

// nextNumber returns how many children were created in a znode. The cversion that a
// client sees also counts deletions.
func nextNumber(st client.Stat) int64 {
	return (int64(st.Cversion) + int64(st.NumChildren)) / 2
}

package queue

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// prefix is the prefix of the names of all items.
const prefix = "queue-"

// order is the order in which consumers get items, by their names.
type order struct {
	compare func(a, b string) int
	due     func(name string) time.Time // nil: immediately
}

// byName is Curator's order for all queues except those with delays or ids.
var byName = order{compare: cmp.Compare[string]}

// priorityInfix returns text that sorts like the priorities, the lowest first.
func priorityInfix(priority int32) string {
	sign := 1
	if priority < 0 {
		sign = 0
	}
	return fmt.Sprintf("%d%08X", sign, uint32(priority)) //nolint:gosec // two's complement
}

func delayInfix(until time.Time) string { return fmt.Sprintf("|%08X|", until.UnixMilli()) }

var byDelay = order{
	compare: func(a, b string) int { return cmp.Or(dueAt(a).Compare(dueAt(b)), cmp.Compare(a, b)) },
	due:     dueAt,
}

// dueAt returns the time at which an item becomes available. Items without a time are
// available immediately.
func dueAt(name string) time.Time {
	_, infix, _ := cut(name)
	ms, err := strconv.ParseInt(infix, 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// idInfix replaces the separators of paths and ids, like Curator.
func idInfix(id string) string { return "|" + cleanID(id) + "|" }

func cleanID(id string) string { return strings.NewReplacer("/", "_", "|", "_").Replace(id) }

var byID = order{compare: func(a, b string) int {
	a0, _, a1 := cut(a)
	b0, _, b1 := cut(b)
	return cmp.Compare(a0+a1, b0+b1)
}}

// cut returns the part of a name between its bars, and the parts before and after.
func cut(name string) (before, infix, after string) {
	i := strings.IndexByte(name, '|')
	j := strings.LastIndexByte(name, '|')
	if i < 0 || i == j {
		return name, "", ""
	}
	return name[:i], name[i+1 : j], name[j+1:]
}

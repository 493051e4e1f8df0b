package tree

import (
	"strings"

	"github.com/zkgo/zkgo/tree/internal/arena"
)

// record adds a change to those of the transaction. The change may alias the request.
func (t *exec) record(c Change) { *t.tx.Record = append(*t.tx.Record, c) }

// recordCreate records that c has created n. cversion is the parent's new child number.
func (t *exec) recordCreate(c *creation, n *node, cversion int32) {
	// A later operation of a multi may delete n, so we copy its path.
	change := Change{Op: c.op, Path: strings.Clone(n.Path()), Data: c.data, ACL: n.State().ACL.List(), Version: cversion}
	if n.Kind() == arena.Ephemeral {
		change.Ephemeral = true
	} else {
		change.Owner = n.Owner()
	}
	t.record(change)
}

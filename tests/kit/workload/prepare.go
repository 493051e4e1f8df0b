package workload

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// These are the znodes below the root, and their contents.
const (
	dirRegisters  = "/r" // the registers
	dirSequences  = "/s" // parents of sequential znodes
	dirEphemerals = "/e" // ephemerals under names that clients compete for
	dirContainers = "/c" // containers
	dirLocks      = "/l" // the queues of locks
	dirIdlers     = "/i" // the ephemerals of idlers
)

// These are the numbers of each kind: small, so that clients meet.
const (
	sequences  = 2
	ephemerals = 8
	containers = 3
)

func (w *world) sequence(i int) string  { return fmt.Sprintf("%s%s/q%d", w.Root, dirSequences, i) }
func (w *world) ephemeral(i int) string { return fmt.Sprintf("%s%s/e%d", w.Root, dirEphemerals, i) }
func (w *world) container(i int) string { return fmt.Sprintf("%s%s/c%d", w.Root, dirContainers, i) }
func (w *world) lock(i int) string      { return fmt.Sprintf("%s%s/l%d", w.Root, dirLocks, i) }

// register returns the path of a register. The set of registers in use changes
// over time.
func (w *world) register(i int) string {
	n := w.uses.Add(1)
	phase := int(n) / (w.PerRegister * w.Registers)
	return fmt.Sprintf("%s%s/%d-%d", w.Root, dirRegisters, phase, i%w.Registers)
}

// prepare creates the znodes that every client expects.
func (w *world) prepare(ctx context.Context) error {
	s := newSession(w, w.rand(0, 0))
	paths := []string{w.Root, w.Root + dirRegisters, w.Root + dirSequences, w.Root + dirEphemerals, w.Root + dirContainers, w.Root + dirLocks,
		w.Root + dirIdlers}
	for i := range sequences {
		paths = append(paths, w.sequence(i))
	}
	for i := range w.Locks {
		paths = append(paths, w.lock(i))
	}
	for len(paths) > 0 {
		c := s.connect(ctx)
		if c == nil {
			return fmt.Errorf("workload: %s and what is below could not be created: %w", w.Root, ctx.Err())
		}
		for len(paths) > 0 {
			o := c.do(&history.Op{Op: proto.OpCreate2, Path: paths[0]})
			if !o.Answered() {
				break
			}
			if o.Code != proto.Ok && o.Code != proto.ErrNodeExists {
				c.hangUp("")
				return fmt.Errorf("workload: create of %s: %w", paths[0], o.Code)
			}
			paths = paths[1:]
		}
		if len(paths) == 0 {
			c.do(&history.Op{Op: proto.OpCloseSession})
		}
		c.hangUp("prepared")
	}
	return nil
}

// hangUp closes the connection and waits until every request is recorded.
func (c *conn) hangUp(why string) {
	c.close(why)
	<-c.done
}

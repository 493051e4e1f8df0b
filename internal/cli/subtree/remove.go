package subtree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// RemoveOptions are the options of Remove.
type RemoveOptions struct {
	// KeepRoot deletes only the descendants of the root.
	KeepRoot bool
	// DryRun deletes nothing and reports what would be deleted.
	DryRun bool
	// Found, if set, is called with the number of znodes to delete after the subtree
	// was read. If it returns an error, Remove stops.
	Found func(n int) error
	// Did, if set, is called for every deleted znode.
	Did func(Action)
}

// rounds limits how often Remove rereads a subtree in which other clients create
// znodes.
const rounds = 10

// Remove deletes the subtree at root, including ephemeral znodes, and returns the number of
// znodes deleted. If other clients delete znodes in the meantime, that's not an error, and
// if they create znodes, we delete those, too. ZooKeeper's own znodes stay. If Remove
// fails, the deletions so far remain.
func Remove(ctx context.Context, c *client.Client, root string, o RemoveOptions) (int, error) {
	r := &remover{c: c, root: root, o: o}
	if !o.KeepRoot && (root == "/" || system(c, root)) {
		return 0, fmt.Errorf("%s: %w", root, ErrProtected)
	}
	for round := 0; ; round++ {
		r.unreadable = nil
		list, err := r.list(ctx)
		if err != nil {
			if round > 0 && errors.Is(err, client.ErrNoNode) {
				err = nil
			}
			return r.deleted, err
		}
		if round == 0 && o.Found != nil {
			if err := o.Found(len(list)); err != nil {
				return 0, err
			}
		}
		again, err := r.round(ctx, list)
		if again && err == nil {
			err = r.unreadable
		}
		if err != nil || !again {
			return r.deleted, err
		}
		if round == rounds {
			return r.deleted, &ConflictError{Path: root, What: "other clients create znodes as fast as they are deleted"}
		}
	}
}

type remover struct {
	c       *client.Client
	root    string
	o       RemoveOptions
	deleted int
	// unreadable is the error that hid the children of some znode. We can still delete the
	// znode if it has none.
	unreadable error
}

// list returns the paths to delete, parents first.
func (r *remover) list(ctx context.Context) ([]string, error) {
	var list []string
	walk := Walk(r.c, r.root, WalkOptions{NoData: true, NoACL: true})
	for n, err := range walk(ctx) {
		if err != nil {
			return nil, err
		}
		if n.Err != nil {
			r.unreadable = n.Err
		}
		if n.Path != "" || !r.o.KeepRoot {
			list = append(list, Join(r.root, n.Path))
		}
	}
	return list, nil
}

// round deletes a list from its end. It reports whether new znodes blocked some
// deletions.
func (r *remover) round(ctx context.Context, list []string) (again bool, err error) {
	blocked := map[string]bool{} // new znodes exist below it
	for end := len(list); end > 0; {
		begin := max(0, end-batchOps)
		var writes []write
		size := 0
		for i := end - 1; i >= begin; i-- {
			path := list[i]
			if blocked[path] {
				blocked[proto.Parent(path)] = true
				continue
			}
			w := deleteWrite(r.c, path, client.AnyVersion)
			if size += w.size; size > batchBytes && len(writes) > 0 {
				begin = i + 1
				break
			}
			writes = append(writes, w)
		}
		end = begin
		if err := r.delete(ctx, writes, blocked); err != nil {
			return false, err
		}
	}
	return len(blocked) > 0, nil
}

// delete deletes as many of the znodes as possible.
func (r *remover) delete(ctx context.Context, writes []write, blocked map[string]bool) error {
	b := newBatch(r.c, r.did)
	for len(writes) > 0 {
		if r.o.DryRun {
			for _, w := range writes {
				r.did(w.Action)
			}
			return nil
		}
		b.writes = writes
		err := b.flush(ctx)
		if err == nil {
			return nil
		}
		var at *ConflictError
		if !errors.As(err, &at) {
			return err
		}
		rest := writes[:0:0]
		for _, w := range writes {
			switch {
			case w.Path == at.Path && errors.Is(err, client.ErrNoNode):
			case w.Path == at.Path, blocked[w.Path]:
				blocked[w.Path] = true
				blocked[proto.Parent(w.Path)] = true
			default:
				rest = append(rest, w)
			}
		}
		writes = rest
	}
	return nil
}

func (r *remover) did(a Action) {
	r.deleted++
	if r.o.Did != nil {
		r.o.Did(a)
	}
}

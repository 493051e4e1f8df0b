package subtree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// RemoveOptions say how a subtree is deleted.
type RemoveOptions struct {
	// KeepRoot deletes only what is below the root.
	KeepRoot bool
	// DryRun deletes nothing and tells what would be deleted.
	DryRun bool
	// Found is called, if set, when the subtree was read, with the number of
	// znodes that will be deleted. An error of it ends everything.
	Found func(n int) error
	// Did is called, if set, for every znode that was deleted.
	Did func(Action)
}

// rounds is how often a subtree is read anew in which others create znodes.
const rounds = 10

// Remove deletes the subtree at root, ephemeral znodes as well, and returns how
// many znodes it has deleted. What others delete meanwhile is fine, what they
// create meanwhile is deleted too. ZooKeeper's own znodes stay. When it fails,
// what is done remains done.
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
			return r.deleted, &ConflictError{Path: root, What: "others create znodes as fast as they are deleted"}
		}
	}
}

type remover struct {
	c       *client.Client
	root    string
	o       RemoveOptions
	deleted int
	// unreadable is why what is below some znode is not known: it can be deleted
	// all the same if nothing is.
	unreadable error
}

// list returns the paths of all that is to be deleted, parents first.
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

// round deletes a list from its end. It reports whether something was in the way.
func (r *remover) round(ctx context.Context, list []string) (again bool, err error) {
	blocked := map[string]bool{} // something new is below it
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

// delete deletes what can be of some znodes.
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

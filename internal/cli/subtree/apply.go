package subtree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// Mode determines how Apply treats an existing target.
type Mode int

// The modes.
const (
	// Create returns an error if the target exists.
	Create Mode = iota
	// Merge creates missing znodes and changes nothing else.
	Merge
	// Overwrite also replaces data and ACLs of existing znodes with the source's.
	Overwrite
)

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	Mode Mode
	// Prune deletes, at the end, znodes that the source doesn't have. It requires
	// Overwrite. Ephemeral znodes and their ancestors stay.
	Prune bool
	// DryRun writes nothing and reports the actions to Did.
	DryRun bool
	// KeepEphemerals copies ephemeral znodes as persistent ones. By default, we skip them.
	KeepEphemerals bool
	// NoACL doesn't copy ACLs: new znodes are open to all clients.
	NoACL bool
	// Parents creates missing ancestors of the target, without data.
	Parents bool
	// Did, if set, is called in order for every action after it succeeded (with DryRun: for
	// every action that Apply would carry out).
	Did func(Action)

	// source is called with every znode of the source before Apply processes it.
	source func(*Node, *Node) error
}

// Report counts the changes.
type Report struct {
	Created   int   `json:"created"`
	Set       int   `json:"set"`
	ACLs      int   `json:"aclsSet"`
	Deleted   int   `json:"deleted"`
	Unchanged int   `json:"unchanged"`
	Kept      int   `json:"kept"`
	Skipped   int   `json:"skipped"`
	Bytes     int64 `json:"bytes"`
	// Sequences lists parents in which creating sequential znodes may fail for a
	// while; see [Sequence].
	Sequences []Sequence `json:"sequences,omitempty"`
}

// Changed reports whether anything was changed.
func (r *Report) Changed() bool { return r.Created+r.Set+r.ACLs+r.Deleted > 0 }

// Apply makes the subtree at target match the source. The source must be complete: if it
// doesn't yield a znode, we consider the znode missing. Apply is idempotent and doesn't
// touch znodes that already match.
//
// We stop at the first error. The Report and the tree then contain the changes made so far.
// A *[ConflictError] means that another client writes to the subtree.
func Apply(ctx context.Context, c *client.Client, target string, src Source, o ApplyOptions) (Report, error) {
	a := &applier{c: c, target: target, o: o, highest: map[string]int64{}}
	a.batch = newBatch(c, a.did)
	err := a.run(ctx, src)
	return a.report, err
}

type applier struct {
	c       *client.Client
	target  string
	o       ApplyOptions
	batch   *batch
	report  Report
	surplus []*Node          // znodes that exist only in the target
	highest map[string]int64 // highest number of a created child, by parent
}

func (a *applier) run(ctx context.Context, src Source) error {
	if err := proto.ValidatePath(a.target); err != nil {
		return fmt.Errorf("%s: %w", a.target, err)
	}
	if system(a.c, a.target) {
		return fmt.Errorf("%s: cannot write to ZooKeeper's own znodes", a.target)
	}
	if a.o.Prune && a.o.Mode != Overwrite {
		return errors.New("pruning requires overwriting")
	}
	there, err := a.existing(ctx)
	if err != nil {
		return err
	}
	some := false
	for p, err := range pairs(ctx, src, there) {
		if err != nil {
			return err
		}
		some = some || p.a != nil
		if err := a.pair(ctx, &p); err != nil {
			return err
		}
	}
	if !some {
		return errors.New("the source has no znodes")
	}
	if err := a.prune(ctx); err != nil {
		return err
	}
	if err := a.batch.flush(ctx); err != nil {
		return err
	}
	a.report.Sequences, err = a.sequences(ctx)
	return err
}

// existing returns the current target.
func (a *applier) existing(ctx context.Context) (Source, error) {
	_, found, err := a.c.Exists(ctx, a.target)
	switch {
	case err != nil:
		return nil, err
	case found && a.o.Mode == Create:
		return nil, &ConflictError{Path: a.target, What: "already exists", Err: ErrTargetExists}
	case found:
		return Walk(a.c, a.target, WalkOptions{}), nil
	}
	return nothing, a.parents(ctx)
}

// parents checks or creates the target's ancestors.
func (a *applier) parents(ctx context.Context) error {
	parent := proto.Parent(a.target)
	if a.target == "/" {
		return nil // a chroot that doesn't exist yet is the target itself
	}
	if parent == "/" || parent == "" {
		if a.c.FullPath("/") == "/" {
			return nil
		}
		parent = "/" // the chroot need not exist
	}
	_, found, err := a.c.Exists(ctx, parent)
	switch {
	case err != nil || found:
		return err
	case !a.o.Parents:
		return fmt.Errorf("%s: %w: %s: %w", a.target, ErrNoParent, parent, client.ErrNoNode)
	case a.o.DryRun:
		a.did(Action{Kind: ActionCreate, Path: parent})
		return nil
	}
	return a.c.EnsurePath(ctx, parent)
}

func (a *applier) did(action Action) {
	r := &a.report
	switch action.Kind {
	case ActionCreate:
		r.Created++
	case ActionSet:
		r.Set++
	case ActionSetACL:
		r.ACLs++
	case ActionDelete:
		r.Deleted++
	case ActionKeep:
		r.Kept++
	case ActionSkip:
		r.Skipped++
	}
	r.Bytes += int64(action.Bytes)
	if a.o.Did != nil {
		a.o.Did(action)
	}
}

// do executes a write, or reports it in a dry run.
func (a *applier) do(ctx context.Context, w write) error {
	if a.o.DryRun {
		a.did(w.Action)
		return nil
	}
	return a.batch.add(ctx, w)
}

// pair makes one znode of the target match the source.
func (a *applier) pair(ctx context.Context, p *pair) error {
	path := Join(a.target, p.path)
	src, dst := p.a, p.b
	if src != nil && a.o.source != nil {
		if err := a.o.source(src, dst); err != nil {
			return err
		}
	}
	switch {
	case src == nil:
		if a.o.Prune {
			a.surplus = append(a.surplus, dst)
		}
		return nil
	case src.Err != nil:
		return src.Err
	case src.Ephemeral() && !a.o.KeepEphemerals:
		a.did(Action{Kind: ActionSkip, Path: path, Why: "ephemeral: it belongs to a session"})
		return nil
	case !a.o.NoACL && blanked(src.ACL):
		return fmt.Errorf("%s: %w", path, ErrHiddenACL)
	}
	if dst == nil {
		return a.create(ctx, path, src)
	}
	return a.update(ctx, path, src, dst)
}

func (a *applier) create(ctx context.Context, path string, src *Node) error {
	acl := src.ACL
	if a.o.NoACL || len(acl) == 0 {
		acl = client.WorldACL(client.PermAll)
	}
	a.number(path)
	return a.do(ctx, createWrite(a.c, path, src, acl))
}

// update replaces the data and the ACL of an existing znode with the source's.
func (a *applier) update(ctx context.Context, path string, src, dst *Node) error {
	acl := !a.o.NoACL && src.ACL != nil
	switch {
	case a.o.Mode == Merge:
		if dst.Err == nil && (!sameData(src.Data, dst.Data) || acl && !sameACL(src.ACL, dst.ACL)) {
			a.did(Action{Kind: ActionKeep, Path: path, Why: "already exists and differs"})
		} else {
			a.report.Unchanged++
		}
		return nil
	case dst.Err != nil:
		return dst.Err
	case dst.Ephemeral():
		return &ConflictError{Path: path, What: "is an ephemeral znode of a live session"}
	}
	acl = acl && !sameACL(src.ACL, dst.ACL)
	data := !sameData(src.Data, dst.Data)
	if data {
		if err := a.do(ctx, setWrite(a.c, path, src.Data, dst.Stat)); err != nil {
			return err
		}
	}
	if acl {
		return a.setACL(ctx, path, src.ACL, dst.Stat.Aversion)
	}
	if !data {
		a.report.Unchanged++
	}
	return nil
}

// We flush the batch first, because setACL can't be part of a transaction.
func (a *applier) setACL(ctx context.Context, path string, acl []client.ACL, aversion int32) error {
	action := Action{Kind: ActionSetACL, Path: path}
	if !a.o.DryRun {
		if err := a.batch.flush(ctx); err != nil {
			return err
		}
		if _, err := a.c.SetACL(ctx, path, acl, aversion); err != nil {
			return conflict(path, err)
		}
	}
	a.did(action)
	return nil
}

// prune deletes the znodes that exist only in the target, descendants first.
func (a *applier) prune(ctx context.Context) error {
	kept := map[string]bool{}
	for i := len(a.surplus) - 1; i >= 0; i-- {
		n := a.surplus[i]
		path := Join(a.target, n.Path)
		why := ""
		switch {
		case n.Err != nil:
			return n.Err
		case n.Ephemeral():
			why = "ephemeral: it belongs to a session"
		case kept[n.Path]:
			why = "has ephemeral znodes below it"
		}
		if why != "" {
			kept[parentOf(n.Path)] = true
			a.did(Action{Kind: ActionKeep, Path: path, Why: why})
			continue
		}
		if err := a.do(ctx, deleteWrite(a.c, path, n.Stat.Version)); err != nil {
			return err
		}
	}
	return nil
}

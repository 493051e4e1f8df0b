package subtree

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
)

// Place is a subtree of an ensemble.
type Place struct {
	Client *client.Client
	Root   string
}

// String returns the root.
func (p Place) String() string { return p.Root }

// overlap returns the reason why one place can't be copied to another, or "". It
// doesn't recognize two connections to the same ensemble; see mover.note.
func (p Place) overlap(to Place) string {
	a, b := p.Client.FullPath(p.Root), to.Client.FullPath(to.Root)
	switch {
	case !sameSession(p.Client.Session(), to.Client.Session()):
		return ""
	case a == b:
		return "source and target are the same znode"
	case within(b, a):
		return "the target is below the source"
	case within(a, b):
		return "the source is below the target"
	}
	return ""
}

// sameSession also compares the passwords, because two ensembles may have assigned the same
// session id, but passwords are random.
func sameSession(a, b client.Session) bool {
	return a.ID == b.ID && bytes.Equal(a.Password, b.Password)
}

// Copy makes the subtree at one place match that at another, in the same or another
// ensemble; see [Apply].
func Copy(ctx context.Context, from, to Place, o ApplyOptions) (Report, error) {
	if why := from.overlap(to); why != "" {
		return Report{}, fmt.Errorf("%s cannot be copied to %s: %s", from, to, why)
	}
	return Apply(ctx, to.Client, to.Root, Walk(from.Client, from.Root, WalkOptions{NoACL: o.NoACL}), o)
}

// Stage is a stage of Move.
type Stage string

// The stages of Move.
const (
	StageCopy   Stage = "copy"
	StageVerify Stage = "verify"
	StageDelete Stage = "delete"
)

// MoveOptions are the options of Move.
type MoveOptions struct {
	// Apply contains the options of the copy. We reject KeepEphemerals and NoACL, because they
	// would lose information.
	Apply ApplyOptions
	// Stage, if set, is called when a stage begins.
	Stage func(Stage)
	// Deleted, if set, is called for every znode deleted from the old place.
	Deleted func(path string)
}

// Move copies a subtree, rereads and compares both places, and only then deletes the
// old one. It returns the number of znodes deleted there.
//
// If another client changes the subtree, Move stops with a *[ConflictError]. The copy then contains
// the znodes as we read them, and the old place contains all znodes that we have not deleted yet,
// including the changed one. Ephemeral znodes stop Move before it writes anything.
//
// There is one change that we can't notice: a client deletes a znode and recreates it with
// the same version after Move's last read of the znode and before the transaction (of up to
// 500 znodes) that deletes it.
func Move(ctx context.Context, from, to Place, o MoveOptions) (Report, int, error) {
	m := &mover{from: from, to: to, o: o}
	if err := m.refuse(ctx); err != nil {
		return Report{}, 0, err
	}
	m.stage(StageCopy)
	apply := o.Apply
	apply.source = m.note
	report, err := Copy(ctx, from, to, apply)
	if err != nil || apply.DryRun {
		return report, 0, err
	}
	m.stage(StageVerify)
	if err := m.verify(ctx); err != nil {
		return report, 0, fmt.Errorf("copied, but nothing was deleted: %w", err)
	}
	m.stage(StageDelete)
	if err := m.delete(ctx); err != nil {
		return report, m.deleted, fmt.Errorf("copied, but only %d of %d znodes deleted at the source: %w", m.deleted, len(m.nodes), err)
	}
	return report, m.deleted, nil
}

type mover struct {
	from, to Place
	o        MoveOptions
	nodes    []moved // in the order of Compare
	deleted  int
}

// moved records a copied znode.
type moved struct {
	path string
	stat client.Stat
}

// sameStat reports whether a znode is unchanged apart from its children.
func sameStat(a, b client.Stat) bool {
	return a.Czxid == b.Czxid && a.Mzxid == b.Mzxid && a.Version == b.Version && a.Aversion == b.Aversion
}

func (m *mover) stage(s Stage) {
	if m.o.Stage != nil {
		m.o.Stage(s)
	}
}

// refuse rejects subtrees that can't be moved, before anything is written.
func (m *mover) refuse(ctx context.Context) error {
	root := m.from.Root
	switch {
	case root == "/" || system(m.from.Client, root):
		return fmt.Errorf("%s: this znode can't be moved", root)
	case m.o.Apply.KeepEphemerals || m.o.Apply.NoACL || m.o.Apply.Mode == Merge:
		return errors.New("a move needs a complete copy: no merging, with its ACLs, without ephemeral znodes")
	}
	for n, err := range Walk(m.from.Client, root, WalkOptions{NoData: true, NoACL: true})(ctx) {
		switch {
		case err != nil:
			return err
		case n.Err != nil:
			return n.Err
		case n.Ephemeral():
			return &ConflictError{Path: Join(root, n.Path), What: fmt.Sprintf("is an ephemeral znode of session 0x%x, which cannot be moved", n.Stat.EphemeralOwner)}
		}
	}
	return nil
}

// note records a znode that was read. We reject a target that is the same znode over
// another connection, because Move would delete it.
func (m *mover) note(src, dst *Node) error {
	path := Join(m.from.Root, src.Path)
	switch {
	case src.Ephemeral():
		return &ConflictError{Path: path, What: "is an ephemeral znode, which cannot be moved"}
	case dst != nil && dst.Stat.Czxid == src.Stat.Czxid && dst.Stat.Ctime == src.Stat.Ctime:
		return &ConflictError{Path: path, What: "source and target are the same znode, or one was restored from a backup of the other"}
	}
	m.nodes = append(m.nodes, moved{path: src.Path, stat: src.Stat})
	return nil
}

// verify rereads both places: the old one must be unchanged, and the new one
// complete.
func (m *mover) verify(ctx context.Context) error {
	for _, p := range []Place{m.from, m.to} {
		if err := p.Client.Sync(ctx, p.Root); err != nil {
			return err
		}
	}
	i := 0
	a, b := Walk(m.from.Client, m.from.Root, WalkOptions{}), Walk(m.to.Client, m.to.Root, WalkOptions{})
	for p, err := range pairs(ctx, a, b) {
		switch {
		case err != nil:
			return err
		case p.a == nil:
			continue // it existed before
		}
		if err := p.readable(); err != nil {
			return err
		}
		path := Join(m.from.Root, p.path)
		if i == len(m.nodes) || Compare(p.path, m.nodes[i].path) < 0 {
			return &ConflictError{Path: path, What: "was created since it was copied"}
		}
		if p.path != m.nodes[i].path {
			return &ConflictError{Path: Join(m.from.Root, m.nodes[i].path), What: "was deleted since it was copied"}
		}
		if !sameStat(p.a.Stat, m.nodes[i].stat) {
			return &ConflictError{Path: path, What: "was changed since it was copied"}
		}
		if d := p.difference(DiffOptions{}); d != nil {
			return &ConflictError{Path: path, What: "the copy differs: " + d.String()}
		}
		i++
	}
	if i < len(m.nodes) {
		return &ConflictError{Path: Join(m.from.Root, m.nodes[i].path), What: "was deleted since it was copied"}
	}
	return nil
}

// delete deletes the old place, descendants first.
func (m *mover) delete(ctx context.Context) error {
	b := newBatch(m.from.Client, func(a Action) {
		m.deleted++
		if m.o.Deleted != nil {
			m.o.Deleted(a.Path)
		}
	})
	for end := len(m.nodes); end > 0; {
		begin := max(0, end-batchOps)
		if err := m.unchanged(ctx, m.nodes[begin:end]); err != nil {
			return err
		}
		for i := end - 1; i >= begin; i-- {
			n := m.nodes[i]
			if err := b.add(ctx, deleteWrite(m.from.Client, Join(m.from.Root, n.path), n.stat.Version)); err != nil {
				return err
			}
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
		end = begin
	}
	return nil
}

// unchanged checks znodes a last time. The server checks their versions when we delete
// them. With this check, we also find recreated znodes that have the same version.
func (m *mover) unchanged(ctx context.Context, nodes []moved) error {
	c := m.from.Client
	if err := c.Sync(ctx, m.from.Root); err != nil {
		return err
	}
	return each(ctx, len(nodes), func(ctx context.Context, i int) error {
		path := Join(m.from.Root, nodes[i].path)
		st, found, err := c.Exists(ctx, path)
		switch {
		case err != nil:
			return err
		case !found:
			return &ConflictError{Path: path, What: "was deleted since it was copied"}
		case !sameStat(st, nodes[i].stat):
			return &ConflictError{Path: path, What: "was changed since it was copied"}
		}
		return nil
	})
}

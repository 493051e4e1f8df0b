package node

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// keep keeps the znode in one session, and returns why the session has ended.
func (n *Node) keep(ctx context.Context, s recipes.Session) error {
	// We sync because the server of a new session may lag behind.
	if err := s.Sync(ctx, n.path); err != nil {
		return err
	}
	if s.ID() != n.session {
		n.session = s.ID()
		n.mu.Lock()
		n.written = 0
		n.mu.Unlock()
	}
	for {
		stat, there, w, err := s.ExistsW(ctx, n.path)
		if err != nil {
			return err
		}
		n.mu.Lock()
		fresh := n.written == n.version
		n.mu.Unlock()
		ours := there && (n.mode != recipes.Ephemeral || stat.EphemeralOwner == s.ID())
		if ours && fresh || there && !ours && !n.replaceable(stat) {
			n.note(ours, nil)
			if err := n.rest(ctx, w, ours); err != nil {
				return err
			}
			continue
		}
		remove(w)
		switch {
		case ours:
			err = n.write(ctx, s, stat)
		case there:
			n.note(false, nil)
			err = n.replace(ctx, s, stat)
		default:
			n.note(false, nil)
			err = n.create(ctx, s)
		}
		if err != nil && !recipes.Again(ctx, err) && !raced(err) {
			return err
		}
	}
}

// raced reports whether a write was refused because the znode has changed since it
// was read.
func raced(err error) bool {
	return errors.Is(err, client.ErrNodeExists) || errors.Is(err, client.ErrNoNode) || errors.Is(err, client.ErrBadVersion)
}

// replaceable reports whether another session's znode may be replaced.
func (n *Node) replaceable(stat client.Stat) bool {
	return n.mode == recipes.Ephemeral && (n.takeover || n.former[stat.EphemeralOwner])
}

// rest waits until the znode has changed, or there is new data to write.
func (n *Node) rest(ctx context.Context, w recipes.Watch, ours bool) error {
	for {
		n.mu.Lock()
		changed, fresh := n.changed, n.written == n.version
		n.mu.Unlock()
		if ours && !fresh {
			remove(w)
			return nil
		}
		select {
		case _, ok := <-w.Events():
			if !ok {
				return client.ErrSessionExpired
			}
			return nil
		case <-changed:
		case <-ctx.Done():
			remove(w)
			return context.Cause(ctx)
		}
	}
}

// create creates the znode.
func (n *Node) create(ctx context.Context, s recipes.Session) error {
	data, version := n.wanted(s)
	_, err := s.Create(ctx, n.path, data, n.mode, n.acl)
	if errors.Is(err, client.ErrNoNode) {
		return recipes.EnsureContainers(ctx, s, recipe.Parent(n.path))
	}
	if err == nil {
		n.wrote(version)
	}
	return err
}

// replace replaces another session's znode with a znode of this session.
func (n *Node) replace(ctx context.Context, s recipes.Session, stat client.Stat) error {
	data, version := n.wanted(s)
	err := s.Multi(ctx,
		recipes.Op{Kind: recipes.OpDelete, Path: n.path, Version: stat.Version},
		recipes.Op{Kind: recipes.OpCreate, Path: n.path, Data: data, Mode: n.mode, ACL: n.acl})
	if err == nil {
		n.wrote(version)
	}
	return err
}

// write writes the newest data if the znode still has the version that was read. With
// another version, it may be another session's znode. It is safe to repeat write.
func (n *Node) write(ctx context.Context, s recipes.Session, stat client.Stat) error {
	data, version := n.wanted(s)
	_, err := s.Set(ctx, n.path, data, stat.Version)
	if err == nil {
		n.wrote(version)
	}
	return err
}

// wanted returns the data to write and its version, and records that session s writes
// it.
func (n *Node) wanted(s recipes.Session) ([]byte, int) {
	n.former[s.ID()] = true
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = 0 // unknown if the write fails
	return n.data, n.version
}

func (n *Node) wrote(version int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = version
	n.tell()
}

// leave deletes the znode if it belongs to this Node, even though the context has
// ended.
func (n *Node) leave(s recipes.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n.mu.Lock()
	mine := n.former[s.ID()] && !n.abandoned
	n.mu.Unlock()
	for mine {
		var stat client.Stat
		err := s.Sync(ctx, n.path)
		if err == nil {
			var there bool
			stat, there, err = s.Exists(ctx, n.path)
			if err == nil && (!there || n.mode == recipes.Ephemeral && stat.EphemeralOwner != s.ID()) {
				return
			}
		}
		if err == nil {
			err = s.Delete(ctx, n.path, stat.Version)
		}
		if err == nil || !recipes.Again(ctx, err) && !raced(err) {
			return
		}
	}
}

// remove removes a watch.
func remove(w recipes.Watch) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.Remove(ctx)
}

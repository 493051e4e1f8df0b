package tree

import (
	"fmt"
	"iter"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Stored is a znode as ZooKeeper's snapshots store it, with raw metadata: Cversion
// counts created children, and Owner also marks containers and times to live.
type Stored struct {
	Path                                     string
	Data                                     []byte
	ACL                                      []proto.ACL
	Czxid, Mzxid, Pzxid, Ctime, Mtime, Owner int64
	Version, Cversion, Aversion              int32
}

// Import replaces the content of the tree with imported znodes, which come in any order,
// with the root as "" or "/". We add any missing znodes of ZooKeeper's own, and recount
// the usage of every quota.
//
// An owner that starts with the bytes ff 00 00 is a time to live unless isSession
// knows it. With the Emulate353TTL policy, so is any other negative owner except
// the container's. An error leaves a fresh tree, as with Restore.
func (t *Tree) Import(zxid int64, p Policy, isSession func(id int64) bool, nodes iter.Seq2[*Stored, error]) error {
	err := t.replace(func() error { return t.importNodes(zxid, p, isSession, nodes) })
	if err != nil {
		return fmt.Errorf("tree: import: %w", err)
	}
	return nil
}

func (t *Tree) importNodes(zxid int64, p Policy, isSession func(id int64) bool, nodes iter.Seq2[*Stored, error]) error {
	l := loader{t: t}
	t.zxid = zxid
	for n, err := range nodes {
		if err != nil {
			return err
		}
		path := n.Path
		if path == "" {
			path = rootPath
		}
		if err := proto.ValidatePath(path); err != nil {
			return fmt.Errorf("node with an impossible path: %w", err)
		}
		s := arena.State{
			Text: arena.NewText(kindUnder(n.Owner, p, isSession), n.Owner, path, n.Data), ACL: t.acls.Intern(n.ACL),
			Czxid: n.Czxid, Mzxid: n.Mzxid, Pzxid: n.Pzxid, Ctime: n.Ctime, Mtime: n.Mtime,
			Cversion: n.Cversion, Aversion: n.Aversion,
		}
		s.Version = n.Version
		if _, err := l.place(&s); err != nil {
			return err
		}
	}
	for _, path := range [...]string{rootPath, procPath, quotaPath, ConfigPath} {
		if n := t.arena.Get(path); n == nil || n.State().ACL == nil {
			if err := l.missing(path); err != nil {
				return err
			}
		}
	}
	if err := l.finish(); err != nil {
		return err
	}
	for prefix := range t.quotas {
		t.recount(prefix)
	}
	return nil
}

// missing adds one of ZooKeeper's own znodes.
func (l *loader) missing(path string) error {
	s := arena.State{Text: arena.NewText(arena.Persistent, 0, path, []byte{}), ACL: l.t.acls.Intern(openACL())}
	if path == ConfigPath {
		l.t.acls.Release(s.ACL)
		s.ACL, s.Aversion = l.t.acls.Intern(readACL()), -1
	}
	_, err := l.place(&s)
	return err
}

// recount writes the usage of a quota to its stats node.
func (t *editor) recount(prefix string) {
	if n := t.statsNode(prefix); n != nil {
		t.overwrite(n, t.measure(prefix))
	}
}

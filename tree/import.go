package tree

import (
	"fmt"
	"iter"

	"github.com/zkgo/zkgo/proto"
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
// with the root as "" or "/". We add ZooKeeper's own znodes where they are missing, and
// recount the usage of every quota.
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
		s := state{
			text: newText(kindUnder(n.Owner, p, isSession), n.Owner, path, n.Data), acl: t.acls.intern(n.ACL),
			czxid: n.Czxid, mzxid: n.Mzxid, pzxid: n.Pzxid, ctime: n.Ctime, mtime: n.Mtime,
			cversion: n.Cversion, aversion: n.Aversion,
		}
		s.version = n.Version
		if _, err := l.place(&s); err != nil {
			return err
		}
	}
	for _, path := range [...]string{rootPath, procPath, quotaPath, ConfigPath} {
		if n := t.index.get(path); n == nil || n.acl == nil {
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
	s := state{text: newText(persistent, 0, path, []byte{}), acl: l.t.acls.intern(openACL())}
	if path == ConfigPath {
		l.t.acls.release(s.acl)
		s.acl, s.aversion = l.t.acls.intern(readACL()), -1
	}
	_, err := l.place(&s)
	return err
}

// recount writes the usage of a quota to its stats node.
func (t *Tree) recount(prefix string) {
	if n := t.statsNode(prefix); n != nil {
		t.overwrite(n, t.measure(prefix))
	}
}

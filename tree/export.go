package tree

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Stored returns the znodes of the snapshot as ZooKeeper stores them, with the root
// as "/", in the order of their paths, so a parent comes before its children. Like
// WriteTo, it may run concurrently with transactions. A snapshot can be read only
// once, by either Stored or WriteTo. The caller may iterate over the sequence any
// number of times, also after Release. A *Stored is valid until the next one; its
// slices and strings are immutable.
func (s *Snapshot) Stored() (iter.Seq[*Stored], error) {
	images := make([]image, 0, s.count)
	for more := true; more; {
		var err error
		if images, more, err = s.collect(images, collectTarget); err != nil {
			return nil, err
		}
	}
	if len(images) != s.count {
		return nil, fmt.Errorf("tree: the snapshot at zxid %#x has %d nodes instead of %d", s.zxid, len(images), s.count)
	}
	slices.SortFunc(images, func(a, b image) int { return strings.Compare(a.Path(), b.Path()) })
	return func(yield func(*Stored) bool) {
		for i := range images {
			if !yield(stored(&images[i].State)) {
				return
			}
		}
	}, nil
}

// Len returns the number of znodes in the snapshot.
func (s *Snapshot) Len() int { return s.count }

// Digest returns ZooKeeper's tree digest, version 2, of the snapshot.
func (s *Snapshot) Digest() uint64 { return s.totals.digest }

// HasTTL reports whether the tree has znodes with a time to live, which not every
// version of ZooKeeper supports. The caller holds the lock.
func (t *Tree) HasTTL() bool {
	for n := range t.containers {
		if n.Kind() == arena.TTL {
			return true
		}
	}
	return false
}

// stored returns s as ZooKeeper stores it.
func stored(s *arena.State) *Stored {
	return &Stored{
		Path: s.Path(), Data: s.Data(), ACL: s.ACL.List(), Owner: s.Owner(),
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, Ctime: s.Ctime, Mtime: s.Mtime,
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
	}
}

// Digest returns the znode's part of ZooKeeper's tree digest, version 2: 0 for a
// znode below /zookeeper.
func (n *Stored) Digest() uint64 {
	if belowProc(n.Path) {
		return 0
	}
	var b [statBlock]byte
	s := arena.State{
		Text:  arena.Text{Version: n.Version},
		Czxid: n.Czxid, Mzxid: n.Mzxid, Pzxid: n.Pzxid, Ctime: n.Ctime, Mtime: n.Mtime,
		Cversion: n.Cversion, Aversion: n.Aversion,
	}
	putStat(&s, &b, n.Owner)
	return uint64(extendCRC(arena.TextCRC(n.Path, n.Data), &b))
}

// IsEphemeral reports whether owner, as ZooKeeper stores it, is the owner of an ephemeral
// znode rather than the mark of a container or of a time to live. If a number could be
// either, we decide by isSession and p in the same way as Import.
func IsEphemeral(owner int64, p Policy, isSession func(id int64) bool) bool {
	return kindUnder(owner, p, isSession) == arena.Ephemeral
}

// kindUnder returns the kind of znode that an imported owner marks.
func kindUnder(owner int64, p Policy, isSession func(id int64) bool) arena.Kind {
	k := kindOf(owner)
	switch {
	case k != arena.Persistent && isSession(owner):
		return arena.Ephemeral
	case p&Emulate353TTL != 0 && k == arena.Ephemeral && owner < 0:
		return arena.TTL
	}
	return k
}

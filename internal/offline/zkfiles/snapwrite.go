package zkfiles

import (
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Constants of the snapshot file format.
const (
	snapMagic     = 0x5a4b534e // "ZKSN"
	fileVersion   = 2
	snapDB        = -1
	openACL       = -1 // the number of the ACL that grants all permissions to all clients
	digestVersion = zktxn.DigestVersion
)

// SnapshotName returns the file name that ZooKeeper expects: snapshot.<zxid> and the
// extension of the compression.
func SnapshotName(zxid int64, c Compression) string {
	return fmt.Sprintf("snapshot.%x%s", uint64(zxid), c.Extension())
}

// WriteSnapshot writes a snapshot of the tree, and the sessions at the same moment,
// as a ZooKeeper snapshot file. Transactions may change the tree concurrently;
// WriteSnapshot acquires the tree's read lock repeatedly for short times. sessions
// must not change (see session.Table.Clone). WriteSnapshot consumes the snapshot but
// doesn't release it.
func WriteSnapshot(w io.Writer, snap *tree.Snapshot, sessions *session.Table, c Compression) error {
	nodes, err := snap.Stored()
	if err != nil {
		return err
	}
	z, err := c.wrap(w)
	if err != nil {
		return err
	}
	s := snapshotWriter{sink: newSink(z), numbers: make(map[*proto.ACL]int64)}
	s.buf = proto.AppendInt(s.buf, snapMagic)
	s.buf = proto.AppendInt(s.buf, fileVersion)
	s.buf = proto.AppendLong(s.buf, snapDB)
	s.body(nodes, sessions)
	s.seal()
	s.buf = proto.AppendLong(s.buf, snap.Zxid())
	s.buf = proto.AppendInt(s.buf, digestVersion)
	s.buf = proto.AppendLong(s.buf, int64(snap.Digest()))
	s.seal()
	s.buf = proto.AppendLong(s.buf, snap.Zxid())
	s.seal()
	if s.err == nil {
		s.err = s.w.Flush()
	}
	if err := errors.Join(s.err, z.Close()); err != nil {
		return fmt.Errorf("zkfiles: writing a snapshot at zxid %#x: %w", snap.Zxid(), err)
	}
	return nil
}

// WriteBody writes what ReadBody reads: the snapshot as a leader sends it to a learner. The rest
// is as for WriteSnapshot.
func WriteBody(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error {
	nodes, err := snap.Stored()
	if err != nil {
		return err
	}
	s := snapshotWriter{sink: newSink(w), numbers: make(map[*proto.ACL]int64)}
	s.body(nodes, sessions)
	s.flush()
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}

// snapshotWriter writes znodes and the access control lists they use. We identify a list by
// its address, because a tree stores each list only once.
type snapshotWriter struct {
	*sink
	numbers map[*proto.ACL]int64
}

// body writes the sessions, the lists and the znodes.
func (s *snapshotWriter) body(nodes func(func(*tree.Stored) bool), sessions *session.Table) {
	s.buf = proto.AppendInt(s.buf, int32(sessions.Len()))
	for row := range sessions.All {
		s.buf = proto.AppendLong(s.buf, row.ID)
		s.buf = proto.AppendInt(s.buf, row.Timeout)
	}
	s.lists(nodes)
	for n := range nodes {
		s.node(n)
	}
	s.buf = proto.AppendString(s.buf, "/")
}

// lists numbers and writes the lists of all znodes.
func (s *snapshotWriter) lists(nodes func(func(*tree.Stored) bool)) {
	var order [][]proto.ACL
	for n := range nodes {
		key := listKey(n.ACL)
		if _, known := s.numbers[key]; known {
			continue
		}
		if len(n.ACL) == 1 && n.ACL[0] == proto.OpenACL()[0] {
			s.numbers[key] = openACL
			continue
		}
		order = append(order, n.ACL)
		s.numbers[key] = int64(len(order))
	}
	s.buf = proto.AppendInt(s.buf, int32(len(order)))
	for i, list := range order {
		if list == nil {
			list = []proto.ACL{} // ZooKeeper can't read null
		}
		s.buf = proto.AppendLong(s.buf, int64(i+1))
		s.buf = proto.AppendACLs(s.buf, list)
		s.flush()
	}
}

// listKey returns the identity of a list. All empty lists have the same identity.
func listKey(list []proto.ACL) *proto.ACL {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

func (s *snapshotWriter) node(n *tree.Stored) {
	path := n.Path
	if path == "/" {
		path = "" // "/" marks the end of the znodes
	}
	s.buf = proto.AppendString(s.buf, path)
	s.buf = proto.AppendBuffer(s.buf, n.Data)
	s.buf = proto.AppendLong(s.buf, s.numbers[listKey(n.ACL)])
	for _, v := range [...]int64{n.Czxid, n.Mzxid, n.Ctime, n.Mtime} {
		s.buf = proto.AppendLong(s.buf, v)
	}
	for _, v := range [...]int32{n.Version, n.Cversion, n.Aversion} {
		s.buf = proto.AppendInt(s.buf, v)
	}
	s.buf = proto.AppendLong(s.buf, n.Owner)
	s.buf = proto.AppendLong(s.buf, n.Pzxid)
	s.flush()
}

package zkfiles

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Digest is the digest of the tree at one zxid as a file says it.
type Digest struct {
	Zxid    int64
	Version int32 // of the way to compute it; only 2 can be compared
	Value   uint64
}

// SnapshotInfo is what a snapshot file says of itself.
type SnapshotInfo struct {
	Compression Compression
	Nodes       int
	Sessions    int
	// Digest belongs to the end of the writing. nil: the file has none, as those
	// of ZooKeeper before 3.6 and of a server that had just been started.
	Digest *Digest
	// LastZxid is the newest transaction at the end of the writing; −1 before
	// ZooKeeper 3.9.
	LastZxid int64
	// Verified says that the digest was that of the state. Without it, a
	// snapshot may hold the half of what went on while it was written.
	Verified bool
}

// ReadSnapshot replaces the content of t by a snapshot file of ZooKeeper and
// adds its sessions to table, each with the password that ZooKeeper gave it.
// name is for messages. The zxid is the one that the file itself or its name
// (snapshot.<zxid>) says, or else the largest of any znode. A digest that does not fit is an error: then the
// snapshot is no state without the log that belongs to it. After an error t is
// a fresh tree or untouched. A field that l does not allow is an error that matches
// ErrTooLong.
func ReadSnapshot(name string, r io.Reader, p tree.Policy, l Limits, t *tree.Tree, table *session.Table) (SnapshotInfo, error) {
	s, info, err := readSnapshot(name, r, p, l)
	if err != nil {
		return info, err
	}
	s.Zxid = s.newest()
	if d := info.Digest; d != nil {
		s.Zxid = max(s.Zxid, d.Zxid)
		if info.Verified = d.Version == digestVersion && d.Value == s.digest; !info.Verified && d.Version == digestVersion {
			return info, fmt.Errorf("%s: the digest is %#x where the file says %#x: it was written while transactions went on, and is no state without the log that belongs to it", name, s.digest, d.Value)
		}
	}
	s.Zxid = max(s.Zxid, info.LastZxid, zxidOf(filepath.Base(name), snapshotPrefix))
	return info, s.Fill(t, table)
}

// newest returns the largest zxid in any znode.
func (s *State) newest() (zxid int64) {
	for _, n := range s.nodes {
		zxid = max(zxid, n.Czxid, n.Mzxid, n.Pzxid)
	}
	return zxid
}

// readSnapshot reads a file as it is. The state's Zxid is left at 0.
func readSnapshot(name string, r io.Reader, p tree.Policy, l Limits) (*State, SnapshotInfo, error) {
	info := SnapshotInfo{LastZxid: -1}
	content, compression, err := decompressed(r)
	if err != nil {
		return nil, info, fmt.Errorf("%s: %w", name, err)
	}
	info.Compression = compression
	s := snapshotReader{source: newSource(name, content, l), State: emptyState(p), lists: make(map[int64][]proto.ACL)}
	if compression != None {
		s.name += " (uncompressed)"
	}
	s.header()
	s.sessions()
	s.acls()
	s.readNodes()
	s.seal("the znodes")
	s.trailer(&info)
	if s.err != nil {
		return nil, info, s.err
	}
	info.Nodes, info.Sessions = len(s.nodes), len(s.Sessions)
	return s.State, info, nil
}

type snapshotReader struct {
	*source
	*State
	lists map[int64][]proto.ACL
}

func (s *snapshotReader) header() {
	magic, version := s.int(), s.int()
	s.long() // an id of the database, which nobody uses
	switch {
	case s.err != nil:
	case magic != snapMagic:
		s.err = fmt.Errorf("%s: no snapshot of ZooKeeper: it begins with %#08x instead of %#08x", s.name, uint32(magic), uint32(snapMagic))
	case version != fileVersion:
		s.err = fmt.Errorf("%s: a snapshot of format %d, only %d is known", s.name, version, fileVersion)
	}
}

func (s *snapshotReader) sessions() {
	for n := s.count("sessions"); n > 0 && s.err == nil; n-- {
		id := s.long()
		s.Sessions[id] = s.int()
	}
}

// acls reads the table of the access control lists.
func (s *snapshotReader) acls() {
	for n := s.count("access control lists"); n > 0 && s.err == nil; n-- {
		number := s.long()
		list := []proto.ACL{}
		for k := s.count("entries of an access control list"); k > 0 && s.err == nil; k-- {
			perms := s.int()
			list = append(list, proto.ACL{Perms: proto.Perms(perms), ID: proto.ID{Scheme: s.string("scheme"), ID: s.nullable("id")}})
		}
		s.lists[number] = list
	}
	s.lists[openACL] = proto.OpenACL()
}

// readNodes reads the znodes, each behind its parent.
func (s *snapshotReader) readNodes() {
	for s.err == nil {
		at := s.off
		path := s.string("path")
		if path == "/" || s.err != nil {
			break
		}
		n := &node{Stored: tree.Stored{Path: path, Data: s.bytes("data")}}
		list := s.long()
		n.Czxid, n.Mzxid, n.Ctime, n.Mtime = s.long(), s.long(), s.long(), s.long()
		n.Version, n.Cversion, n.Aversion = s.int(), s.int(), s.int()
		n.Owner, n.Pzxid = s.long(), s.long()
		if s.err != nil {
			return
		}
		if err := s.place(n, list); err != nil {
			s.err = fmt.Errorf("%s: at offset %d: %w", s.name, at, err)
		}
	}
	if s.err == nil && s.nodes[""] == nil {
		s.fail(errors.New("there is no root"))
	}
}

// place adds a znode that was read. Its list may be missing: one that came while
// the snapshot was written is in the log.
func (s *snapshotReader) place(n *node, list int64) error {
	acl, known := s.lists[list]
	if n.ACL = acl; !known {
		s.unlisted[n.Path] = list
	}
	if s.nodes[n.Path] != nil {
		return fmt.Errorf("znode %q is there twice", n.Path)
	}
	if n.Path != "" {
		slash := strings.LastIndexByte(n.Path, '/')
		if slash < 0 || s.nodes[n.Path[:slash]] == nil {
			return fmt.Errorf("znode %q has no parent", n.Path)
		}
	}
	s.insert(n)
	return nil
}

// Sizes of what may stand behind the znodes, each with its checksum.
const (
	sealSize     = 8 + 4 + 1
	digestSize   = 8 + 4 + 8 + sealSize
	lastZxidSize = 8 + sealSize
)

// trailer reads what ZooKeeper 3.6 and 3.9 have added behind the znodes. Either
// can be switched off, so their sizes tell which there are.
func (s *snapshotReader) trailer(info *SnapshotInfo) {
	if !s.more() {
		return
	}
	rest, err := s.r.Peek(digestSize + lastZxidSize + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		s.fail(err)
		return
	}
	size := len(rest)
	if size != lastZxidSize {
		d := &Digest{Zxid: s.long(), Version: s.int()}
		if s.err == nil && d.Version < digestVersion { // 3.6.0 wrote it as text, in another way to compute it
			s.string("digest")
		} else {
			d.Value = uint64(s.long())
		}
		s.seal("the digest")
		if d.Zxid > 0 {
			info.Digest = d
		}
	}
	if s.more() {
		last := s.long()
		s.seal("the last zxid")
		info.LastZxid = last
	}
	if s.more() {
		s.fail(errors.New("bytes behind the end"))
	}
}

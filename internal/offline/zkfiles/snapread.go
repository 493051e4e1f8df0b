package zkfiles

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// SnapshotInfo is the metadata of a snapshot file.
type SnapshotInfo struct {
	Compression Compression
	Nodes       int
	Sessions    int
	// Digest is the digest at the end of the write. It's nil if the file has none,
	// e.g. before ZooKeeper 3.6, or if the server had just started.
	Digest *Digest
	// LastZxid is the newest transaction at the end of the write; −1 before ZooKeeper
	// 3.9.
	LastZxid int64
	// Verified reports whether the digest matches the state. An unverified snapshot may contain
	// only some of the changes made while it was written.
	Verified bool
}

// ReadSnapshot replaces the content of t with a ZooKeeper snapshot file and adds its
// sessions to table, each with the password that ZooKeeper gave it. name is used in
// messages. The zxid comes from the file or its name (snapshot.<zxid>), or else it's the largest
// zxid of any znode. We return an error if the digest doesn't match, because without its log the
// snapshot isn't a state. After an error, t is a fresh tree or unchanged. The error for a field
// that exceeds l matches ErrTooLong.
func ReadSnapshot(name string, r io.Reader, p tree.Policy, l Limits, t *tree.Tree, table *session.Table) (SnapshotInfo, error) {
	s, info, err := readSnapshot(name, r, p, l)
	if err != nil {
		return info, err
	}
	s.Zxid = s.newest()
	if d := info.Digest; d != nil {
		s.Zxid = max(s.Zxid, d.Zxid)
		if info.Verified = d.Comparable() && d.Value == s.digest; !info.Verified && d.Comparable() {
			return info, fmt.Errorf("%s: the digest is %#x where the file says %#x: it was written while clients wrote, and is inconsistent without its log", name, s.digest, d.Value)
		}
	}
	s.Zxid = max(s.Zxid, info.LastZxid, zxidOf(filepath.Base(name), snapshotPrefix))
	return info, s.Fill(t, table)
}

// newest returns the largest zxid of any znode.
func (s *State) newest() (zxid int64) {
	for _, n := range s.nodes {
		zxid = max(zxid, n.Czxid, n.Mzxid, n.Pzxid)
	}
	return zxid
}

// readSnapshot reads a file as it is. It leaves the state's Zxid at 0.
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
	s.long() // a database id, which is unused
	switch {
	case s.err != nil:
	case magic != snapMagic:
		s.err = fmt.Errorf("%s: not a snapshot of ZooKeeper: it begins with %#08x instead of %#08x", s.name, uint32(magic), uint32(snapMagic))
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

// acls reads the table of access control lists. We don't trust the number of entries that a
// file announces: a list came in a request, so it can't be longer than a field.
func (s *snapshotReader) acls() {
	for n := s.count("access control lists"); n > 0 && s.err == nil; n-- {
		number, from := s.long(), s.off
		list := []proto.ACL{}
		for k := s.count("entries of an access control list"); k > 0 && s.err == nil; k-- {
			perms := s.int()
			list = append(list, proto.ACL{Perms: proto.Perms(perms), ID: proto.ID{Scheme: s.string("scheme"), ID: s.nullable("id")}})
			if n := s.off - from; n > int64(s.maxField()) {
				s.fail(fmt.Errorf("an access control list of more than %d bytes: %w", n, ErrTooLong))
			}
		}
		s.lists[number] = list
	}
	s.lists[openACL] = proto.OpenACL()
}

// readNodes reads the znodes: a parent comes before its children.
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
		s.taken++
	}
	if s.err == nil && s.nodes[""] == nil {
		s.fail(errors.New("the root is missing"))
	}
}

// place adds a znode. Its ACL may be missing: an ACL added while the snapshot was
// being written is in the log.
func (s *snapshotReader) place(n *node, list int64) error {
	acl, known := s.lists[list]
	if n.ACL = acl; !known {
		s.unlisted[n.Path] = list
	}
	if s.nodes[n.Path] != nil {
		return fmt.Errorf("duplicate znode %q", n.Path)
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

// Sizes of the optional fields after the znodes, each with its checksum.
const (
	sealSize     = 8 + 4 + 1
	digestSize   = 8 + 4 + 8 + sealSize
	lastZxidSize = 8 + sealSize
)

// trailer reads the fields that ZooKeeper 3.6 and 3.9 added after the znodes. Each field can be
// disabled, so we recognize the fields by their sizes.
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
		if s.err == nil && d.Version < digestVersion { // 3.6.0 wrote it as text, computed by another algorithm
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
		s.fail(errors.New("bytes after the end"))
	}
}

// ReadBody reads the sessions and znodes that a leader sends to a learner: a snapshot without
// the header, the checksums and the digests of a file. It reads no byte after the last znode
// from r. The leader executes transactions while it writes, so the result isn't a state until
// those have been applied. Its Zxid is 0.
func ReadBody(name string, r *bufio.Reader, p tree.Policy, l Limits) (*State, error) {
	s := snapshotReader{source: newSource(name, r, l), State: emptyState(p), lists: make(map[int64][]proto.ACL)}
	s.r = r
	s.sessions()
	s.acls()
	s.readNodes()
	s.tell()
	return s.State, s.err
}

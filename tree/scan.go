package tree

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Scan reads a snapshot like Restore, but builds no tree. It returns the digest
// (FullDigest) of the tree that Restore would build, or an error if Restore would fail. It
// reads no byte after the snapshot. We keep only one block, the access control lists and
// about 20 bytes per node in memory.
func Scan(r io.Reader) (digest uint64, err error) {
	s := scanner{t: new(Tree), seed: maphash.MakeSeed()}
	s.t.reset()
	var m [len(magic)]byte
	if _, err := io.ReadFull(r, m[:]); err != nil {
		return 0, fmt.Errorf("tree: reading the start of a snapshot: %w", noEOF(err))
	}
	if string(m[:]) != magic {
		return 0, wrongMagic(m[:])
	}
	blocks := blockReader{r: r}
	for !s.ended {
		payload, err := blocks.next()
		if err != nil {
			return 0, err
		}
		if err := s.block(payload); err != nil {
			return 0, blocks.fail(err)
		}
	}
	return s.t.FullDigest(), nil
}

// scanner checks the records of a snapshot. Its tree has no nodes: it only interns
// lists and adds up digests.
type scanner struct {
	t     *Tree
	lists []*acl.Entry
	seed  maphash.Seed
	want  int64 // nodes that the header announces
	begun bool
	ended bool

	paths   []uint64 // hashes of the paths of all nodes
	parents []uint64 // hashes of the parents' paths, once per child
	claims  []claim  // the numbers of children in the nodes' records
	needed  int      // how many of the nodes that every tree has were read
}

// claim is the number of children in a node's record.
type claim struct {
	path uint64
	kids int32
}

func (s *scanner) block(payload []byte) error {
	d := proto.AliasReader(payload)
	for d.Len() > 0 {
		tag := d.Byte()
		if s.ended || s.begun == (tag == tagHeader) {
			return fmt.Errorf("a record with tag %d out of place", tag)
		}
		var err error
		switch tag {
		case tagHeader:
			s.begun = true
			s.t.zxid, s.want = d.Long(), d.Long()
		case tagList:
			number, acl := d.Int(), d.ACLs()
			if d.Err() == nil && int(number) != len(s.lists) {
				err = fmt.Errorf("access control list %d in place of %d", number, len(s.lists))
			} else if d.Err() == nil {
				s.lists = append(s.lists, s.t.acls.Intern(acl))
			}
		case tagNode:
			err = s.node(&d)
		case tagTrailer:
			s.ended = true
			err = s.trailer(&d)
		default:
			return fmt.Errorf("a record with the unknown tag %d", tag)
		}
		if err = errors.Join(err, d.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) node(d *proto.Reader) error {
	n := new(node)
	kids, err := readNode(d, s.lists, n.State())
	if err != nil {
		return err
	}
	s.t.acls.Retain(n.State().ACL)
	path := n.Path()
	if kids > 0 && n.Kind() == arena.Ephemeral {
		return fmt.Errorf("node %q is ephemeral and has children", path)
	}
	if int64(len(s.paths)) >= s.want {
		return fmt.Errorf("more than the %d nodes that the header announces", s.want)
	}
	switch path {
	case rootPath, procPath, quotaPath, ConfigPath:
		s.needed++
	}
	own := maphash.String(s.seed, path)
	s.paths = append(s.paths, own)
	if path != rootPath {
		s.parents = append(s.parents, maphash.String(s.seed, proto.Parent(path)))
	}
	if kids > 0 {
		s.claims = append(s.claims, claim{own, kids})
	}
	s.t.count(n)
	return nil
}

// trailer makes the checks that need all nodes.
func (s *scanner) trailer(d *proto.Reader) error {
	count, digest, full := d.Long(), uint64(d.Long()), uint64(d.Long())
	if d.Err() != nil {
		return d.Err()
	}
	n := int64(len(s.paths))
	switch {
	case n != count || n != s.want:
		return fmt.Errorf("%d nodes where the header says %d and the trailer %d", n, s.want, count)
	case s.needed != 4:
		return fmt.Errorf("%q, %q, %q or %q is missing or occurs twice", rootPath, procPath, quotaPath, ConfigPath)
	case s.t.Digest() != digest:
		return fmt.Errorf("ZooKeeper's digest is %#x instead of %#x", s.t.Digest(), digest)
	case s.t.FullDigest() != full:
		return fmt.Errorf("the digest is %#x instead of %#x", s.t.FullDigest(), full)
	}
	return s.links()
}

// links checks that no node occurs twice, and that each node has as many children
// as its record says.
func (s *scanner) links() error {
	slices.Sort(s.paths)
	for i := 1; i < len(s.paths); i++ {
		if s.paths[i] == s.paths[i-1] {
			return errors.New("a node occurs twice")
		}
	}
	slices.Sort(s.parents)
	slices.SortFunc(s.claims, func(a, b claim) int {
		if a.path < b.path {
			return -1
		}
		return 1
	})
	left := s.parents
	for _, c := range s.claims {
		n := 0
		for n < len(left) && left[n] == c.path {
			n++
		}
		if n != int(c.kids) {
			return fmt.Errorf("a node has %d children instead of %d", n, c.kids)
		}
		left = left[n:]
	}
	if len(left) > 0 {
		return errors.New("a node has more children than its record says, or only its children exist")
	}
	return nil
}

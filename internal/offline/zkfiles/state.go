package zkfiles

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// State is the state that Load builds from ZooKeeper's files.
type State struct {
	Zxid     int64           // of the newest transaction in it
	Sessions map[int64]int32 // timeout in milliseconds by id
	// Passwords has the passwords of the sessions that didn't get ZooKeeper's.
	Passwords map[int64][proto.PasswordSize]byte

	policy   tree.Policy
	nodes    map[string]*node           // the root is ""
	owned    map[int64]map[string]*node // keyed by owner
	unlisted map[string]int64           // znodes with the number of an ACL that hasn't been read
	digest   uint64                     // ZooKeeper's digest of nodes
}

// node is a znode with its contribution to the digest.
type node struct {
	tree.Stored
	part uint64
}

// NewState returns the initial state of a ZooKeeper server.
func NewState(p tree.Policy) *State {
	s := emptyState(p)
	open, read := proto.OpenACL(), proto.OpenACL()
	read[0].Perms = proto.PermRead
	for _, n := range []tree.Stored{
		{Data: []byte{}, ACL: open},
		{Path: "/zookeeper", Data: []byte{}, ACL: open, Cversion: 0},
		{Path: "/zookeeper/quota", Data: []byte{}, ACL: open},
		{Path: "/zookeeper/config", Data: []byte{}, ACL: read, Aversion: -1},
	} {
		s.insert(&node{Stored: n})
	}
	return s
}

// emptyState returns a state without znodes.
func emptyState(p tree.Policy) *State {
	return &State{
		Sessions: make(map[int64]int32), policy: p,
		nodes: make(map[string]*node), owned: make(map[int64]map[string]*node), unlisted: make(map[string]int64),
	}
}

// Len returns the number of znodes.
func (s *State) Len() int { return len(s.nodes) }

// ACLs yields the access control list of each znode.
func (s *State) ACLs() iter.Seq2[string, []proto.ACL] {
	return func(yield func(string, []proto.ACL) bool) {
		for _, n := range s.nodes {
			if !yield(cmp.Or(n.Path, "/"), n.ACL) {
				return
			}
		}
	}
}

// Digest returns ZooKeeper's tree digest, version 2.
func (s *State) Digest() uint64 { return s.digest }

// insert adds a znode that doesn't exist yet.
func (s *State) insert(n *node) {
	s.nodes[n.Path] = n
	n.part = n.Stored.Digest()
	s.digest += n.part
	if n.Owner != 0 {
		set := s.owned[n.Owner]
		if set == nil {
			set = make(map[string]*node)
			s.owned[n.Owner] = set
		}
		set[n.Path] = n
	}
}

// drop removes a znode.
func (s *State) drop(n *node) {
	delete(s.nodes, n.Path)
	delete(s.unlisted, n.Path)
	s.digest -= n.part
	if set := s.owned[n.Owner]; set != nil {
		delete(set, n.Path)
		if len(set) == 0 {
			delete(s.owned, n.Owner)
		}
	}
}

// changed updates the digest after a change of n.
func (s *State) changed(n *node) {
	s.digest -= n.part
	n.part = n.Stored.Digest()
	s.digest += n.part
}

// isSession reports whether there is a session with that id.
func (s *State) isSession(id int64) bool {
	_, is := s.Sessions[id]
	return is
}

// Fill replaces the content of t and adds the sessions to table, each with its password, by
// default that which ZooKeeper gave it. First, like ZooKeeper after loading a state, it
// deletes ephemeral znodes without a session. Fill consumes the State. After an
// error, t is a fresh tree.
func (s *State) Fill(t *tree.Tree, table *session.Table) error {
	for path, number := range s.unlisted {
		return fmt.Errorf("zkfiles: znode %q has the access control list %d, which is in no file", path, number)
	}
	s.purge()
	_, whole := s.nodes["/zookeeper"]
	want := s.digest
	if err := t.Import(s.Zxid, s.policy, s.isSession, s.take); err != nil {
		return fmt.Errorf("zkfiles: %w", err)
	}
	if whole && t.Digest() != want {
		return fmt.Errorf("zkfiles: the tree has digest %#x, but the files have %#x", t.Digest(), want)
	}
	for id, timeout := range s.Sessions {
		password, own := s.Passwords[id]
		if !own {
			password = Password(id)
		}
		table.Put(session.Session{ID: id, Timeout: timeout, Password: password, Gen: 1, Server: 1})
	}
	return nil
}

// take yields all znodes and releases each, so that the whole state isn't in memory twice.
func (s *State) take(yield func(*tree.Stored, error) bool) {
	for path, n := range s.nodes {
		if !yield(&n.Stored, nil) {
			return
		}
		delete(s.nodes, path)
		delete(s.owned, n.Owner)
	}
}

// purge deletes the ephemeral znodes of sessions that no longer exist.
func (s *State) purge() {
	for owner := range s.owned {
		if !s.isSession(owner) && tree.IsEphemeral(owner, s.policy, s.isSession) {
			s.endSession(owner, s.Zxid, nil)
		}
	}
}

package zkfiles

import (
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Apply applies a transaction like ZooKeeper at startup. A fuzzy snapshot may already contain later
// changes, so we skip operations that don't fit any more, and later transactions correct the state.
// The values in a transaction are results, not differences.
func (s *State) Apply(tx *Txn) error {
	if err := s.apply(&tx.Header, tx.Body); err != nil {
		return fmt.Errorf("transaction %#x: %w", uint64(tx.Zxid), err)
	}
	s.Zxid = max(s.Zxid, tx.Zxid)
	return nil
}

func (s *State) apply(h *Header, body any) error {
	switch b := body.(type) {
	case *CreateTxn:
		return s.create(h, b)
	case *DeleteTxn:
		s.remove(b.Path, h.Zxid)
	case *SetDataTxn:
		if n := s.nodes[key(b.Path)]; n != nil {
			n.Data, n.Version, n.Mzxid, n.Mtime = b.Data, b.Version, h.Zxid, h.Time
			s.changed(n)
		}
	case *SetACLTxn:
		if n := s.nodes[key(b.Path)]; n != nil {
			n.ACL, n.Aversion = b.ACL, b.Version
			delete(s.unlisted, n.Path)
			s.changed(n)
		}
	case *CreateSessionTxn:
		s.Sessions[h.Session] = b.Timeout
		if b.Password != nil {
			if s.Passwords == nil {
				s.Passwords = make(map[int64][proto.PasswordSize]byte)
			}
			s.Passwords[h.Session] = b.PasswordOf(h.Session)
		}
	case *CloseSessionTxn:
		delete(s.Sessions, h.Session)
		delete(s.Passwords, h.Session)
		s.endSession(h.Session, h.Zxid, b.Paths)
	case *MultiTxn:
		return s.multi(h, b)
	case *ErrorTxn, *CheckTxn: // only the zxid changes
	default:
		return fmt.Errorf("of unknown type %d", h.Type)
	}
	return nil
}

// multi applies all operations of a multi, or none: the log entry of a failed multi
// contains the operations that would have succeeded.
func (s *State) multi(h *Header, m *MultiTxn) error {
	for i := range m.Ops {
		if _, failed := m.Ops[i].Body.(*ErrorTxn); failed {
			return nil
		}
	}
	for i := range m.Ops {
		sub := *h
		sub.Type = m.Ops[i].Type
		if err := s.apply(&sub, m.Ops[i].Body); err != nil {
			return fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	return nil
}

// key returns the key of a path in nodes.
func key(path string) string {
	if path == "/" {
		return ""
	}
	return path
}

// parentOf returns the parent of path, or nil if it doesn't exist.
func (s *State) parentOf(path string) *node {
	return s.nodes[path[:max(strings.LastIndexByte(path, '/'), 0)]]
}

func (s *State) create(h *Header, c *CreateTxn) error {
	owner, creates := c.Owner(h.Type, s.policy)
	if !creates {
		return nil
	}
	if c.Ephemeral {
		owner = h.Session
	}
	parent := s.parentOf(c.Path)
	if parent == nil {
		return nil
	}
	cversion := c.ParentCversion
	if cversion == -1 { // not written before 3.4
		cversion = parent.Cversion + 1
	}
	old := s.nodes[c.Path]
	if old != nil {
		// The other fields are from a later time. Its ACL may be missing, because the
		// snapshot was written before the ACL was added.
		old.ACL = c.ACL
		delete(s.unlisted, old.Path)
	}
	// A parent from a later time keeps its numbers.
	if cversion > parent.Cversion {
		parent.Cversion, parent.Pzxid = cversion, h.Zxid
		s.changed(parent)
	}
	if old == nil {
		s.insert(&node{Stored: tree.Stored{
			Path: c.Path, Data: c.Data, ACL: c.ACL, Owner: owner,
			Czxid: h.Zxid, Mzxid: h.Zxid, Pzxid: h.Zxid, Ctime: h.Time, Mtime: h.Time,
		}})
	}
	return nil
}

// remove deletes a znode. It updates the parent even if the znode is already gone.
func (s *State) remove(path string, zxid int64) {
	parent := s.parentOf(path)
	if parent == nil {
		return
	}
	if zxid > parent.Pzxid {
		parent.Pzxid = zxid
		s.changed(parent)
	}
	if n := s.nodes[path]; n != nil {
		s.drop(n)
	}
}

// endSession deletes the ephemeral znodes of a session: those listed in the
// transaction, which only ZooKeeper 3.6 and later write, and those in the state.
func (s *State) endSession(id, zxid int64, paths []string) {
	for _, path := range paths {
		s.remove(path, zxid)
	}
	for path := range s.owned[id] {
		s.remove(path, zxid)
	}
}

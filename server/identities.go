package server

import (
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// Bounds of the identities of one connection. A client that proves more of them fails to
// authenticate. Real clients have a handful; an AuthProvider may give one for each group
// that a user belongs to.
const (
	maxIdentities    = 256
	maxIdentityBytes = 64 << 10
)

// maxCarriedBytes is how many bytes of identities go with each command. Of a client with
// more, only fingerprints do (tree.Fingerprint): the log is no place for what a client says
// about itself again and again.
const maxCarriedBytes = 512

// schemeSuper is the scheme of the identity that may do everything.
const schemeSuper = "super"

// identities returns the client's identities.
func (c *conn) identities() []proto.ID { return *c.ids.Load() }

// addIdentities gives the client more of them, each once. It reports false if they are
// too many. The reader calls it.
func (c *conn) addIdentities(more ...proto.ID) bool {
	ids := slices.Clone(c.identities())
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > maxIdentities || identityBytes(ids) > maxIdentityBytes {
		c.s.stats.authFailed.Add(1)
		c.complain("closing a client that has proved too many identities",
			"identities", len(ids), "bytes", identityBytes(ids), "most", maxIdentities, "mostBytes", maxIdentityBytes)
		return false
	}
	c.setIdentities(ids)
	return true
}

// identityBytes is the length of ids in a command.
func identityBytes(ids []proto.ID) int {
	n := 0
	for i := range ids {
		n += 8 + len(ids[i].Scheme) + len(ids[i].ID)
	}
	return n
}

// setIdentities replaces the client's identities. The reader calls it, or whoever makes the
// connection.
func (c *conn) setIdentities(ids []proto.ID) {
	c.ids.Store(&ids)
	if c.short, c.prints = ids, nil; identityBytes(ids) <= maxCarriedBytes {
		return
	}
	c.short = nil
	for _, id := range ids {
		switch id.Scheme {
		case "ip": // is compared by its prefix
			c.short = append(c.short, id)
		case schemeSuper:
			c.short = append(c.short, proto.ID{Scheme: schemeSuper})
		default:
			c.prints = append(c.prints, tree.FingerprintOf(id))
		}
	}
	slices.SortFunc(c.prints, tree.Fingerprint.Compare)
}

// identify puts into cmd what its request can need of the client's identities. Those that
// an ACL is to name, and those of a reconfig, are needed as they are.
func (c *conn) identify(cmd *raftfsm.Command, found lists) {
	if found&authList != 0 || cmd.Op == proto.OpReconfig {
		cmd.IDs = c.identities()
		return
	}
	cmd.IDs, cmd.Prints = c.short, c.prints
}

package server

import (
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// Bounds of the identities of one connection. A client that proves more fails to
// authenticate. Real clients have a handful; an AuthProvider may return one for each
// group of a user.
const (
	maxIdentities    = 256
	maxIdentityBytes = 16 << 10
)

// maxCarriedBytes bounds the bytes of identities that go with each command. If a client
// has more, its commands carry only fingerprints (tree.Fingerprint), because the log
// should not repeat the same identities in every entry.
const maxCarriedBytes = 512

// schemeSuper is the scheme of the identity that has every permission.
const schemeSuper = "super"

// identities returns the client's identities.
func (cs *clientSession) identities() []proto.ID { return *cs.ids.Load() }

// addIdentities adds identities, each once. It returns false if there are too many. The
// reader calls it.
func (cs *clientSession) addIdentities(more ...proto.ID) bool {
	ids := slices.Clone(cs.identities())
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > maxIdentities || identityBytes(ids) > maxIdentityBytes {
		cs.c.s.stats.AuthFailed.Add(1)
		cs.c.complain("closing a client that has proved too many identities",
			"identities", len(ids), "bytes", identityBytes(ids), "most", maxIdentities, "mostBytes", maxIdentityBytes)
		return false
	}
	cs.setIdentities(ids)
	return true
}

// identityBytes returns the length of ids in a command.
func identityBytes(ids []proto.ID) int {
	n := 0
	for i := range ids {
		n += 8 + len(ids[i].Scheme) + len(ids[i].ID)
	}
	return n
}

// setIdentities replaces the client's identities. Only the reader calls it, or the
// goroutine that creates the connection.
func (cs *clientSession) setIdentities(ids []proto.ID) {
	cs.ids.Store(&ids)
	if cs.short, cs.prints = ids, nil; identityBytes(ids) <= maxCarriedBytes {
		return
	}
	cs.short = nil
	for _, id := range ids {
		switch id.Scheme {
		case "ip": // compared by its prefix
			cs.short = append(cs.short, id)
		case schemeSuper:
			cs.short = append(cs.short, proto.ID{Scheme: schemeSuper})
		default:
			cs.prints = append(cs.prints, tree.FingerprintOf(id))
		}
	}
	slices.SortFunc(cs.prints, tree.Fingerprint.Compare)
}

// identify sets in cmd the identities that its request can need. A request that adds
// them to an ACL, and a reconfig, need them in full.
func (cs *clientSession) identify(cmd *raftfsm.Command, brings content) {
	if brings&authList != 0 || cmd.Op == proto.OpReconfig {
		cmd.IDs = cs.identities()
		return
	}
	cmd.IDs, cmd.Prints = cs.short, cs.prints
}

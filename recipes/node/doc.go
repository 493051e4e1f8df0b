// Package node keeps znodes in existence that say "this program is here": one
// znode, one with a time to live, the member of a group.
//
//	n := node.Keep(recipes.On(c), "/hosts/h7", data)
//	defer n.Close()
//	if err := n.Wait(ctx); err != nil {
//		return err
//	}
//
// A [Node] is created again after its session has ended or somebody has deleted it,
// for as long as it is not closed. [Group] is a directory of such znodes and who is
// in it.
//
// # Rules
//
// It imports recipes/cache, recipes and client. An ephemeral znode counts as kept
// only if its owner is the current session. One that belongs to a session of
// somebody else is never touched, unless WithTakeover was given: the Node waits
// until it is gone. One that an earlier session of this very Node has left behind
// is replaced at once, in one transaction. The layout is that of Curator's
// PersistentNode, PersistentTtlNode and GroupMember.
package node

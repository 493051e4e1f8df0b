// Package node maintains znodes that announce a running program: a single znode, a znode
// with a time to live, or a member of a group.
//
//	n := node.Keep(recipes.On(c), "/hosts/h7", data)
//	defer n.Close()
//	if err := n.Wait(ctx); err != nil {
//		return err
//	}
//
// Until it is closed, a [Node] creates its znode again after its session has ended or
// another client has deleted the znode. [Group] is a directory of such znodes and lists its
// members.
//
// # Rules
//
// The package imports recipes/cache, recipes and client. We consider an ephemeral znode
// kept only if its owner is the current session. A Node never touches an ephemeral znode of
// another client's session unless WithTakeover was given: it waits until that znode is
// gone. If an earlier session of the same Node has left a znode, we replace it immediately,
// in one transaction. We use the layout of Curator's PersistentNode, PersistentTtlNode and
// GroupMember.
package node

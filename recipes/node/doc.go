// Package node keeps znodes in existence that announce a running program: a single
// znode, a znode with a time to live, or a member of a group.
//
//	n := node.Keep(recipes.On(c), "/hosts/h7", data)
//	defer n.Close()
//	if err := n.Wait(ctx); err != nil {
//		return err
//	}
//
// Until it is closed, a [Node] creates its znode again after its session has ended or
// another client has deleted the znode. [Group] is a directory of such znodes and
// tells who its members are.
//
// # Rules
//
// The package imports recipes/cache, recipes and client. An ephemeral znode counts as
// kept only if its owner is the current session. A Node never touches an ephemeral
// znode of another client's session unless WithTakeover was given: it waits until
// that znode is gone. It replaces a znode left by an earlier session of the same Node
// immediately, in one transaction. The layout is that of Curator's PersistentNode,
// PersistentTtlNode and GroupMember.
package node

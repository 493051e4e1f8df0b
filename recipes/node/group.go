package node

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"strings"

	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
)

// Group is a directory with one child for each member of a group. Each member keeps its
// child, which is named after the member's id. We use the layout of Curator's GroupMember.
// All methods are safe for concurrent use.
//
// Without a connection, Members returns the last known members. If a member's session ends,
// it is not a member until its Node has joined again, which happens automatically.
type Group struct {
	conn recipes.Conn
	dir  string
	c    *cache.Cache
}

// NewGroup returns the group at dir, which need not exist, and begins to follow its
// members. To become a member, a program must call Join.
func NewGroup(conn recipes.Conn, dir string, opts ...cache.Option) *Group {
	return &Group{conn: conn, dir: dir, c: cache.NewChildren(conn, dir, opts...)}
}

// Join makes this program a member from now until the Node is closed. The id must be
// unique: if another session has a member of that name, the Node waits until that
// member is gone.
func (g *Group) Join(id string, data []byte, opts ...Option) *Node {
	return Keep(g.conn, recipe.Join(g.dir, id), data, opts...)
}

// Wait waits until the members are known.
func (g *Group) Wait(ctx context.Context) error { return g.c.Wait(ctx) }

// Members yields the ids of the members known to this client and their data, sorted by id.
// If a member's program has died, the member remains until its session has ended.
func (g *Group) Members() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for n := range g.c.Children(g.dir) {
			if !yield(n.Name(), n.Data) {
				return
			}
		}
	}
}

// Watch yields the members, now and whenever they or their data change. It may combine
// changes that happen in quick succession. It ends as [cache.Cache.Changes] does.
func (g *Group) Watch(ctx context.Context) iter.Seq2[map[string][]byte, error] {
	return func(yield func(map[string][]byte, error) bool) {
		var last map[string][]byte
		for change, err := range g.c.Changes(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !g.c.Complete() || change.Kind == cache.Resync {
				continue // Completed follows
			}
			now := maps.Collect(g.Members())
			if last != nil && maps.EqualFunc(last, now, bytes.Equal) {
				continue
			}
			last = maps.Clone(now)
			if !yield(now, nil) {
				return
			}
		}
	}
}

// Close stops following the members. The Nodes of Join are not affected.
func (g *Group) Close() { g.c.Close() }

// PartyName returns an id for a member of Kazoo's Party. The member's data is what
// Kazoo calls its identifier.
func PartyName() string { return random() + "__party__" }

// ShallowPartyName returns an id for a member of Kazoo's ShallowParty with the given
// identifier.
func ShallowPartyName(identifier string) string { return random() + "-" + identifier }

// ShallowPartyID returns the identifier in a member's id, or false if it isn't an id of a
// ShallowParty.
func ShallowPartyID(id string) (identifier string, ok bool) {
	_, identifier, ok = strings.Cut(id, "-")
	return identifier, ok
}

// random returns 32 random hexadecimal digits, like Kazoo's.
func random() string { return strings.ReplaceAll(recipe.NewUUID(), "-", "") }

package node

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"strings"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
)

// Group is a directory whose children are the members of a group. Each member
// keeps one, named after its id. The layout is that of Curator's GroupMember. All
// methods are safe for concurrent use.
//
// Without a connection Members are those known last; a member whose session has ended
// is none until it has joined again, which its Node does by itself.
type Group struct {
	conn recipes.Conn
	dir  string
	c    *cache.Cache
}

// NewGroup returns the group at dir, which need not exist, and begins to follow who
// is in it. To be in it takes a Join.
func NewGroup(conn recipes.Conn, dir string, opts ...cache.Option) *Group {
	return &Group{conn: conn, dir: dir, c: cache.NewChildren(conn, dir, opts...)}
}

// Join makes this program a member from now until the Node is closed. The id must be
// unique: if another session is a member of that name, this waits until it is gone.
func (g *Group) Join(id string, data []byte, opts ...Option) *Node {
	return Keep(g.conn, recipes.Join(g.dir, id), data, opts...)
}

// Wait waits until the members are known.
func (g *Group) Wait(ctx context.Context) error { return g.c.Wait(ctx) }

// Members yields the ids of the members and their data, sorted by id, as this
// client knows them: a member whose program has died is there until its session has
// ended.
func (g *Group) Members() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for n := range g.c.Children(g.dir) {
			if !yield(n.Name(), n.Data) {
				return
			}
		}
	}
}

// Watch yields the members, now and whenever they or their data change. Changes that
// follow one another fast may be seen as one. It ends as [cache.Cache.Changes]
// does.
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

// Close ends the following. Members that were joined remain.
func (g *Group) Close() { g.c.Close() }

// PartyName returns an id as the members of Kazoo's Party have it. The member's data
// are what Kazoo calls its identifier.
func PartyName() string { return random() + "__party__" }

// ShallowPartyName returns an id as the members of Kazoo's ShallowParty have it, for
// what Kazoo calls the member's identifier.
func ShallowPartyName(identifier string) string { return random() + "-" + identifier }

// ShallowPartyID returns the identifier in a member's id; false if that is none of a
// ShallowParty.
func ShallowPartyID(id string) (identifier string, ok bool) {
	_, identifier, ok = strings.Cut(id, "-")
	return identifier, ok
}

// random returns 32 random hexadecimal digits, as Kazoo makes them.
func random() string { return strings.ReplaceAll(recipes.NewUUID(), "-", "") }

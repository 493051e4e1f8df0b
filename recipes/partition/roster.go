package partition

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/recipes/node"
)

// roster is the list of the party's members known to this member.
type roster struct {
	mu      sync.Mutex
	ids     []string      // sorted
	changed chan struct{} // closed and replaced when they change
}

func newRoster() *roster { return &roster{changed: make(chan struct{})} }

// now returns the members, and a channel that is closed when they change.
func (r *roster) now() ([]string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids, r.changed
}

// follow keeps the roster up to date until ctx ends or the client is closed, and
// returns the reason.
func (r *roster) follow(ctx context.Context, group *node.Group) error {
	for members, err := range group.Watch(ctx) {
		if err != nil {
			return err
		}
		ids := []string{}
		for name := range members {
			if id, ok := node.ShallowPartyID(name); ok {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		r.mu.Lock()
		if !slices.Equal(ids, r.ids) {
			r.ids = ids
			close(r.changed)
			r.changed = make(chan struct{})
		}
		r.mu.Unlock()
	}
	return context.Cause(ctx)
}

// settle waits until the members have not changed for the quiet time and include id.
func (r *roster) settle(ctx context.Context, id string, quiet time.Duration) (members []string, changed <-chan struct{}, err error) {
	for {
		members, changed = r.now()
		var settled <-chan time.Time
		if slices.Contains(members, id) {
			settled = time.After(quiet)
		}
		select {
		case <-changed:
		case <-settled:
			return members, changed, nil
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

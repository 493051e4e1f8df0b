package discovery

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"github.com/zkgo/zkgo/recipes/cache"
)

// Service follows the instances of one service until Close. All methods are safe for
// concurrent use. Without a connection, and until a new session has caught up, it
// keeps the last known instances.
type Service[P any] struct {
	dir string
	c   *cache.Cache

	mu   sync.Mutex
	read map[string]decoded[P] // by path
}

// decoded is the decoded content of a znode at a version.
type decoded[P any] struct {
	mzxid int64
	inst  Instance[P]
	err   error
}

// Watch begins to follow the instances of a service, which need not have any.
func (d *Discovery[P]) Watch(name string, opts ...cache.Option) *Service[P] {
	dir := d.path(name)
	return &Service[P]{dir: dir, c: cache.NewChildren(d.conn, dir, opts...), read: map[string]decoded[P]{}}
}

// Wait waits until the instances are known.
func (s *Service[P]) Wait(ctx context.Context) error { return s.c.Wait(ctx) }

// Close stops following the service.
func (s *Service[P]) Close() { s.c.Close() }

// Err returns why the service is no longer followed, or nil while it is.
func (s *Service[P]) Err() error { return s.c.Err() }

// Instances returns all instances known to this client, sorted by id. If a program has
// died, its instance remains until its session has ended. Instances omits invalid znodes;
// see Bad.
func (s *Service[P]) Instances() []Instance[P] {
	list, _ := s.decode()
	return list
}

// Bad returns the errors of znodes that are not valid instances, by path.
func (s *Service[P]) Bad() map[string]error {
	_, bad := s.decode()
	return bad
}

// decode decodes the znodes that have changed since the last call.
func (s *Service[P]) decode() (list []Instance[P], bad map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[string]decoded[P], len(s.read))
	for n := range s.c.Children(s.dir) {
		d, have := s.read[n.Path]
		if !have || d.mzxid != n.Stat.Mzxid {
			d = decoded[P]{mzxid: n.Stat.Mzxid}
			d.err = json.Unmarshal(n.Data, &d.inst)
		}
		known[n.Path] = d
		if d.err == nil {
			list = append(list, d.inst)
			continue
		}
		if bad == nil {
			bad = map[string]error{}
		}
		bad[n.Path] = d.err
	}
	s.read = known
	return list, bad
}

// Changes yields all instances, now and whenever an instance has changed. It ends as
// [cache.Cache.Changes] does.
func (s *Service[P]) Changes(ctx context.Context) iter.Seq2[[]Instance[P], error] {
	return func(yield func([]Instance[P], error) bool) {
		for change, err := range s.c.Changes(ctx) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case change.Kind == cache.Resync, change.Node.Path == s.dir, !s.c.Complete():
				continue // Completed will follow, or nothing has changed
			}
			if !yield(s.Instances(), nil) {
				return
			}
		}
	}
}

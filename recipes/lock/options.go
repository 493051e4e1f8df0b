package lock

import (
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// Option changes a lock.
type Option func(*config)

type config struct {
	data   []byte
	acl    []client.ACL
	policy recipes.LossPolicy
	retry  client.RetryPolicy
	layout layout
}

// WithData sets what stands in the lock's znodes, for people and for
// Participants: by default nothing.
func WithData(data []byte) Option { return func(c *config) { c.data = data } }

// WithACL sets the ACL of the lock's znodes. Those who share a lock must be able
// to list its directory, to read the znodes of the others, and to delete their own.
func WithACL(acl ...client.ACL) Option { return func(c *config) { c.acl = acl } }

// WithLossPolicy says when a Lease counts as lost.
func WithLossPolicy(p recipes.LossPolicy) Option { return func(c *config) { c.policy = p } }

// WithRetry says how often a waiter whose znode or session has gone takes a new
// place, at the end of the line. By default he does until his context ends.
func WithRetry(p client.RetryPolicy) Option { return func(c *config) { c.retry = p } }

// WithKazooLayout names znodes as Kazoo does, so that stock Kazoo programs stand
// in the same line, and Curator's do not: see docs/locks.md.
func WithKazooLayout() Option { return func(c *config) { c.layout = kazooLayout } }

// WithName sets what stands between the mark and the number in the names of a
// [Mutex]'s znodes, "lock-" by default: programs with different names in one
// directory do not see each other. Curator's LeaderLatch has "latch-". It must
// have a character, and none that is a slash.
func WithName(name string) Option { return func(c *config) { c.layout.mutex = name } }

func newConfig(opts []Option) config {
	c := config{
		retry:  client.RetryExponential(50*time.Millisecond, 5*time.Second, 0),
		layout: curatorLayout,
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

package lock

import (
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// Option configures a lock.
type Option func(*config)

type config struct {
	data   []byte
	acl    []client.ACL
	policy recipes.LossPolicy
	retry  client.RetryPolicy
	layout layout
}

// WithData sets the data of the lock's znodes, for administrators and for
// Participants. By default the znodes are empty.
func WithData(data []byte) Option { return func(c *config) { c.data = data } }

// WithACL sets the ACL of the lock's znodes. Clients that share a lock need permission to
// list its directory, to read the znodes of the others, and to delete their own.
func WithACL(acl ...client.ACL) Option { return func(c *config) { c.acl = acl } }

// WithLossPolicy decides when a Lease counts as lost.
func WithLossPolicy(p recipes.LossPolicy) Option { return func(c *config) { c.policy = p } }

// WithRetry sets how often a waiter that has lost its znode or session starts again at the
// end of the line. By default it tries until its context ends.
func WithRetry(p client.RetryPolicy) Option { return func(c *config) { c.retry = p } }

// WithKazooLayout names znodes like Kazoo, so that unmodified Kazoo programs can use the
// same lock, but Curator programs can't: see docs/guide/locks.md.
func WithKazooLayout() Option { return func(c *config) { c.layout = kazooLayout } }

// WithName sets the part between the mark and the number in the names of a [Mutex]'s
// znodes, which is "lock-" by default. Programs that use different names in one directory
// don't see each other. E.g. Curator's LeaderLatch uses "latch-". The name must not be
// empty or contain a slash.
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

package cache

import "math"

// Option configures a cache.
type Option func(*config)

type config struct {
	depth     int
	inFlight  int
	buffer    int
	recursive bool
	noData    bool
	filter    func(path string) bool
}

// Defaults.
const (
	// DefaultInFlight is the maximum number of reads in flight.
	DefaultInFlight = 64
	// DefaultBuffer is how many changes are buffered for a slow reader.
	DefaultBuffer = 1024
)

// WithDepth limits a tree: 0 is only the root, 1 is the root and its children, and so
// on.
func WithDepth(levels int) Option { return func(c *config) { c.depth = max(levels, 0) } }

// WithInFlight sets the maximum number of reads in flight, at least 1.
func WithInFlight(n int) Option { return func(c *config) { c.inFlight = max(n, 1) } }

// WithBuffer sets how many changes are buffered for each reader of Changes, at least
// 1.
func WithBuffer(n int) Option { return func(c *config) { c.buffer = max(n, 1) } }

// WithoutData makes the cache drop the znodes' data.
func WithoutData() Option { return func(c *config) { c.noData = true } }

// WithFilter excludes every znode below the root for which keep returns false, and
// everything below it. keep should be fast, and it must always return the same result for a
// path and not call the cache.
func WithFilter(keep func(path string) bool) Option { return func(c *config) { c.filter = keep } }

// WithRecursiveWatch uses one persistent recursive watch instead of two watches and a
// goroutine for each znode, which is much cheaper for a large tree. If the client or the
// server (before ZooKeeper 3.6) has no such watches, the option has no effect.
//
// We don't make it the default because of a bug in ZooKeeper before 3.9: when the same
// client sets any other watch on the cache's root, e.g. with another cache, the server
// forgets the recursive watch, and the cache gets no more events. With such servers you
// should use a separate client for the cache.
func WithRecursiveWatch() Option { return func(c *config) { c.recursive = true } }

func newConfig(depth int, opts []Option) config {
	c := config{depth: depth, inFlight: DefaultInFlight, buffer: DefaultBuffer}
	for _, o := range opts {
		o(&c)
	}
	return c
}

const unlimited = math.MaxInt

package cache

import "math"

// Option changes a cache.
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
	// DefaultInFlight is how many reads are under way at a time.
	DefaultInFlight = 64
	// DefaultBuffer is how many changes a slow reader may be behind.
	DefaultBuffer = 1024
)

// WithDepth limits a tree: 0 is the root alone, 1 its children as well, and so on.
func WithDepth(levels int) Option { return func(c *config) { c.depth = max(levels, 0) } }

// WithInFlight sets how many reads are under way at a time, at least 1.
func WithInFlight(n int) Option { return func(c *config) { c.inFlight = max(n, 1) } }

// WithBuffer sets how many changes are kept for each reader of Changes, at least 1.
func WithBuffer(n int) Option { return func(c *config) { c.buffer = max(n, 1) } }

// WithoutData does not keep the znodes' data.
func WithoutData() Option { return func(c *config) { c.noData = true } }

// WithFilter leaves out every znode below the root for which keep returns false,
// and all below it. keep must be quick, always say the same of a path, and not call
// the cache.
func WithFilter(keep func(path string) bool) Option { return func(c *config) { c.filter = keep } }

// WithRecursiveWatch uses one persistent recursive watch for all instead of two
// watches and a goroutine for each znode, which is far less for a large tree. Where
// the client or the server (before ZooKeeper 3.6) has none it changes nothing.
//
// It is not the default because of a fault of ZooKeeper before 3.9: when the same
// client sets any other watch on the very znode at the cache's root, for instance
// by another cache, the server forgets the recursive one and the cache hears
// nothing any more. On such servers give the cache a client of its own.
func WithRecursiveWatch() Option { return func(c *config) { c.recursive = true } }

func newConfig(depth int, opts []Option) config {
	c := config{depth: depth, inFlight: DefaultInFlight, buffer: DefaultBuffer}
	for _, o := range opts {
		o(&c)
	}
	return c
}

const unlimited = math.MaxInt

package server

import "sync"

// buffer is a pooled byte slice. Buffers move between connections' inputs, replies and
// outputs; the last holder puts it back. A shared buffer is the output of many
// connections at once: it is immutable and not pooled.
type buffer struct {
	b      []byte
	shared bool
}

// Capacities of pooled buffers. Most requests and replies of one round fit the
// smallest; the garbage collector takes buffers above the largest.
const (
	smallBuffer = 4 << 10
	midBuffer   = 16 << 10
	bigBuffer   = 128 << 10
	hugeBuffer  = 4 << 20
)

// buffers holds pools of buffers by capacity.
type buffers struct{ small, mid, big, huge sync.Pool }

// pools hold what busy connections need and idle ones give back.
type pools struct {
	buffers
	works    sync.Pool // of *work
	pendings sync.Pool // of *pending
}

// get returns an empty buffer with a capacity of at least n bytes.
func (p *buffers) get(n int) *buffer {
	pool, size := p.class(n)
	if pool != nil {
		if b, ok := pool.Get().(*buffer); ok && cap(b.b) >= n {
			return b
		}
	}
	return &buffer{b: make([]byte, 0, max(n, size))}
}

// class returns the pool for requests of n bytes.
func (p *buffers) class(n int) (*sync.Pool, int) {
	switch {
	case n <= smallBuffer:
		return &p.small, smallBuffer
	case n <= midBuffer:
		return &p.mid, midBuffer
	case n <= bigBuffer:
		return &p.big, bigBuffer
	case n <= hugeBuffer:
		return &p.huge, n
	}
	return nil, n
}

// put returns b to its pool; b may be nil.
func (p *buffers) put(b *buffer) {
	if b == nil || b.shared {
		return
	}
	n := cap(b.b)
	b.b = b.b[:0]
	switch {
	case n < smallBuffer || n > hugeBuffer:
	case n < midBuffer:
		p.small.Put(b)
	case n < bigBuffer:
		p.mid.Put(b)
	case n < 2*bigBuffer:
		p.big.Put(b)
	default:
		p.huge.Put(b)
	}
}

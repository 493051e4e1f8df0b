package buffer

import "sync"

// Buffer is a pooled byte slice. Buffers move between connections' inputs, replies and
// outputs; the last holder puts it back. A shared buffer is the output of many
// connections at once: it is immutable and not pooled.
type Buffer struct {
	B      []byte
	Shared bool
}

// Capacities of pooled buffers. Most requests and replies of one round fit the smallest. We don't
// pool buffers above the largest.
const (
	Small = 4 << 10
	Mid   = 16 << 10
	Big   = 128 << 10
	Huge  = 4 << 20
)

// Pool contains one pool of buffers per capacity.
type Pool struct{ small, mid, big, huge sync.Pool }

// Get returns an empty buffer with a capacity of at least n bytes.
func (p *Pool) Get(n int) *Buffer {
	pool, size := p.class(n)
	if pool != nil {
		if b, ok := pool.Get().(*Buffer); ok && cap(b.B) >= n {
			return b
		}
	}
	return &Buffer{B: make([]byte, 0, max(n, size))}
}

// class returns the pool for requests of n bytes.
func (p *Pool) class(n int) (*sync.Pool, int) {
	switch {
	case n <= Small:
		return &p.small, Small
	case n <= Mid:
		return &p.mid, Mid
	case n <= Big:
		return &p.big, Big
	case n <= Huge:
		return &p.huge, n
	}
	return nil, n
}

// Put returns b to its pool; b may be nil.
func (p *Pool) Put(b *Buffer) {
	if b == nil || b.Shared {
		return
	}
	n := cap(b.B)
	b.B = b.B[:0]
	switch {
	case n < Small || n > Huge:
	case n < Mid:
		p.small.Put(b)
	case n < Big:
		p.mid.Put(b)
	case n < 2*Big:
		p.big.Put(b)
	default:
		p.huge.Put(b)
	}
}

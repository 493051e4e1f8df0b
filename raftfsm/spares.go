package raftfsm

const (
	// maxSpareBytes is the largest buffer kept for reuse, and maxSpares how many:
	// while many clients write, as many runs or entries wait or are being built.
	maxSpareBytes = 2 * maxBatchBytes
	maxSpares     = 3
)

// spares are buffers that nobody needs any more, to build the next runs or
// entries in. They are not for concurrent use.
type spares [][]byte

// take returns an empty buffer.
func (s *spares) take() []byte {
	last := len(*s) - 1
	if last < 0 {
		return make([]byte, 0, 4096)
	}
	b := (*s)[last]
	*s = (*s)[:last]
	return b
}

// put keeps b, unless it is large or there are enough.
func (s *spares) put(b []byte) {
	if cap(b) <= maxSpareBytes && len(*s) < maxSpares {
		*s = append(*s, b[:0])
	}
}

package propose

const (
	// MaxSpareBytes is the largest buffer kept for reuse, and maxSpares how many are
	// kept: while many clients write, that many runs or entries are queued or being
	// built.
	MaxSpareBytes = 2 * MaxBatchBytes
	maxSpares     = 3
)

// spares are unused buffers in which to build the next runs or entries. They are not
// safe for concurrent use.
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

// put keeps b, unless b is too large or there are enough spares.
func (s *spares) put(b []byte) {
	if cap(b) <= MaxSpareBytes && len(*s) < maxSpares {
		*s = append(*s, b[:0])
	}
}

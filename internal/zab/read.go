package zab

import (
	"errors"
	"io"
)

// readStep is the maximum allocation for a length before its bytes arrive.
const readStep = 1 << 20

// ReadUpTo reads n bytes, or fewer at the end of r. We allocate memory only as bytes
// arrive.
func ReadUpTo(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, min(n, readStep))
	for len(b) < n {
		have := len(b)
		step := min(n-have, max(readStep, have))
		if cap(b) < have+step {
			b = append(make([]byte, 0, have+step), b...)
		}
		b = b[:have+step]
		k, err := io.ReadFull(r, b[have:])
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return b[:have+k], nil
		case err != nil:
			return nil, err
		}
	}
	return b, nil
}

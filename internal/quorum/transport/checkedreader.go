package transport

import (
	"errors"
	"io"

	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

// checkedReader passes on a stream while a check reads the same bytes. It reports EOF
// only after the check has found nothing wrong. A stream that ends early breaks no rule:
// its sender was stopped, or the connection was lost.
type checkedReader struct {
	r       io.Reader
	left    int64 // bytes still to come
	w       *io.PipeWriter
	verdict chan error
	head    []byte // already read and checked
	err     error
}

func checkWhileReading(r io.Reader, size int64, check func(io.Reader) error) *checkedReader {
	in, w := io.Pipe()
	c := &checkedReader{r: io.LimitReader(r, size), left: size, w: w, verdict: make(chan error, 1)}
	go func() {
		err := check(in)
		if err != nil {
			err = rpc.Breaks("a snapshot with invalid content", "%v", err)
			_ = in.CloseWithError(err)
		} else {
			_, _ = io.Copy(io.Discard, in)
		}
		c.verdict <- err
	}()
	return c
}

// prime reads and checks up to n bytes, which Read returns later. It returns an error if
// they are wrong.
func (c *checkedReader) prime(n int) error {
	head := make([]byte, n)
	for len(c.head) < n {
		k, err := c.read(head[len(c.head):])
		c.head = head[:len(c.head)+k]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if n := copy(p, c.head); n > 0 {
		c.head = c.head[n:]
		return n, nil
	}
	return c.read(p)
}

func (c *checkedReader) read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	if errors.Is(err, io.EOF) && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if n > 0 {
		if _, werr := c.w.Write(p[:n]); werr != nil {
			c.err = werr
			return 0, werr
		}
	}
	if errors.Is(err, io.EOF) {
		_ = c.w.Close()
		if verdict := <-c.verdict; verdict != nil {
			err = verdict
		}
	}
	c.err = err
	return n, err
}

// broken reports whether the stream failed, rather than the check.
func (c *checkedReader) broken() bool {
	rule := (*rpc.RuleError)(nil)
	return c.err != nil && !errors.Is(c.err, io.EOF) && !errors.As(c.err, &rule)
}

// close ends the check when the rest of the stream is not read.
func (c *checkedReader) close() { _ = c.w.CloseWithError(io.ErrUnexpectedEOF) }

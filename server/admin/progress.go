package admin

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// A state is long, and a client may be slow: a deadline for all of it would be wrong, and
// none would let a client that stopped hold a connection and a file of the whole state
// for ever. So each progressStep has to pass within progressTime.
const (
	progressStep = 16 << 10
	progressTime = 30 * time.Second
)

// noDeadlines lifts the server's deadlines for a request that may take long: the end of
// a read deadline would also end the request's context.
func noDeadlines(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // a broken connection fails by itself, here and below
	_ = c.SetWriteDeadline(time.Time{})
}

// progressing returns the body of r, which fails when it makes no progress.
func progressing(w http.ResponseWriter, r *http.Request) io.Reader {
	return &progressReader{r: r.Body, deadline: http.NewResponseController(w).SetReadDeadline}
}

type progressReader struct {
	r        io.Reader
	deadline func(time.Time) error
	left     int // bytes until the deadline is put off
}

// Read implements io.Reader.
func (p *progressReader) Read(b []byte) (int, error) {
	if p.left <= 0 {
		p.left = progressStep
		_ = p.deadline(time.Now().Add(progressTime))
	}
	n, err := p.r.Read(b)
	p.left -= n
	if errors.Is(err, io.EOF) {
		_ = p.deadline(time.Time{})
	}
	return n, err
}

// progressWriter fails when the client takes nothing.
type progressWriter struct {
	w        io.Writer
	deadline func(time.Time) error
}

// Write implements io.Writer.
func (p *progressWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		_ = p.deadline(time.Now().Add(progressTime))
		var k int
		k, err = p.w.Write(b[n:min(len(b), n+progressStep)])
		n += k
	}
	return n, err
}

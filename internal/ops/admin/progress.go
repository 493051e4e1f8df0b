package admin

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// A state is large and a client may be slow, so we can't set a deadline for the whole
// transfer. Without a deadline, however, a client that stops could occupy a connection and a
// file with the whole state forever. We therefore set a deadline, progressTime, for each
// progressStep.
const (
	progressStep = 16 << 10
	progressTime = 30 * time.Second
)

// noDeadlines removes the server's deadlines from a long request. An expired read deadline
// would also cancel the request's context.
func noDeadlines(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // a broken connection fails anyway, here and below
	_ = c.SetWriteDeadline(time.Time{})
}

// replySoon sets a deadline for a short reply.
func replySoon(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(progressTime))
}

// progressing returns the body of r. Reading from it fails when there is no progress.
func progressing(w http.ResponseWriter, r *http.Request) io.Reader {
	return &progressReader{r: r.Body, deadline: http.NewResponseController(w).SetReadDeadline}
}

type progressReader struct {
	r        io.Reader
	deadline func(time.Time) error
	left     int // bytes until the deadline is extended
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

// progressWriter fails when the client doesn't read.
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

//go:build !unix

package server

// rawSockets reports whether sockets can be read and written without blocking.
const rawSockets = false

// readReady is never called on systems without rawSockets.
func (c *conn) readReady(uintptr) bool { return true }

// readNow is never called on systems without rawSockets.
func (c *conn) readNow(uintptr) {}

// rawWriter writes to in-process connections without blocking.
type rawWriter struct{}

func newRawWriter() *rawWriter { return &rawWriter{} }

// tryWrite writes as much of b to c as it can and returns how much.
func (w *rawWriter) tryWrite(c *conn, b []byte) (int, error) {
	if c.try == nil {
		return 0, nil
	}
	return c.try.TryWrite(b)
}

// maxFDs is unknown here.
func maxFDs() int64 { return -1 }

//go:build !unix

package server

// rawSockets says that sockets can be read and written without waiting.
const rawSockets = false

// readReady is never called where sockets cannot be read without waiting.
func (c *conn) readReady(uintptr) bool { return true }

// readNow is never called where sockets cannot be read without waiting.
func (c *conn) readNow(uintptr) {}

// rawWriter writes to in-process connections without waiting.
type rawWriter struct{}

func newRawWriter() *rawWriter { return &rawWriter{} }

// tryWrite writes what it can of b to c and returns how much that was.
func (w *rawWriter) tryWrite(c *conn, b []byte) (int, error) {
	if c.try == nil {
		return 0, nil
	}
	return c.try.TryWrite(b)
}

// maxFDs is not known.
func maxFDs() int64 { return -1 }

//go:build unix

package server

import (
	"io"
	"syscall"
)

// rawSockets says that sockets can be read and written without waiting.
const rawSockets = true

// readReady reads from a socket that may have nothing to read: then it lets go
// of the buffers and returns false, to be called again when there is something.
func (c *conn) readReady(fd uintptr) bool {
	c.makeRoom()
	b := c.in.b
	for {
		n, err := recv(int(fd), b[len(b):cap(b)])
		switch {
		case n > 0:
			c.in.b = b[:len(b)+n]
			return true
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			c.idle()
			return false
		case err == nil:
			c.readErr = io.EOF
			return true
		default:
			c.readErr = err
			return true
		}
	}
}

// readNow reads what a socket has. The buffers stay.
func (c *conn) readNow(fd uintptr) {
	c.makeRoom()
	b := c.in.b
	for {
		n, err := recv(int(fd), b[len(b):cap(b)])
		c.silent = err == syscall.EAGAIN
		switch {
		case n > 0:
			c.in.b = b[:len(b)+n]
		case c.silent:
		case err == syscall.EINTR:
			continue
		case err == nil:
			c.readErr = io.EOF
		default:
			c.readErr = err
		}
		return
	}
}

// rawWriter writes to sockets without waiting. It is used by one goroutine.
type rawWriter struct {
	b     []byte
	n     int
	err   error
	ready func(fd uintptr) // the method value, made once
}

func newRawWriter() *rawWriter {
	w := new(rawWriter)
	w.ready = w.write
	return w
}

// write writes what the kernel takes at once.
func (w *rawWriter) write(fd uintptr) {
	for w.n < len(w.b) {
		n, err := send(int(fd), w.b[w.n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			if err != syscall.EAGAIN {
				w.err = err
			}
			return
		}
		w.n += n
	}
}

// tryWrite writes what it can of b to c and returns how much that was.
func (w *rawWriter) tryWrite(c *conn, b []byte) (int, error) {
	if c.raw == nil {
		if c.try == nil {
			return 0, nil
		}
		return c.try.TryWrite(b)
	}
	w.b, w.n, w.err = b, 0, nil
	err := c.raw.Control(w.ready) // not Write, which prepares for waiting
	w.b = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// maxFDs is the process's limit of open files.
func maxFDs() int64 {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return -1
	}
	return int64(lim.Cur)
}

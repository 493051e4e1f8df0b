//go:build unix

package server

import (
	"io"
	"syscall"
)

// rawSockets reports whether sockets can be read and written without blocking.
const rawSockets = true

// readReady reads from a socket. If there is no input, it releases the buffers and
// returns false; the caller calls it again when there is some.
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

// readNow reads the input that a socket has. It keeps the buffers.
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

// rawWriter writes to sockets without blocking. Only one goroutine may use it.
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

// write writes what the kernel accepts at once.
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

// tryWrite writes as much of b to c as it can and returns how much.
func (w *rawWriter) tryWrite(c *conn, b []byte) (int, error) {
	if c.raw == nil {
		if c.try == nil {
			return 0, nil
		}
		return c.try.TryWrite(b)
	}
	w.b, w.n, w.err = b, 0, nil
	err := c.raw.Control(w.ready) // Write would prepare for waiting
	w.b = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// maxFDs returns the process's limit of open files.
func maxFDs() int64 {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return -1
	}
	return int64(lim.Cur)
}

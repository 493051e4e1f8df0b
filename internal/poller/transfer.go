package poller

import (
	"errors"
	"io"
	"syscall"
)

// ErrNoInput is the error of Recv if nothing has arrived.
var ErrNoInput = errors.New("poller: no input")

// Recv reads input of a nonblocking socket into b and returns its length. It returns io.EOF
// after the last byte, and ErrNoInput if it would have to wait.
func Recv(fd uintptr, b []byte) (int, error) {
	for {
		n, err := recv(fd, b)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case blocks(err):
			return 0, ErrNoInput
		case !transient(err):
			return 0, err
		}
	}
}

// Writer writes to sockets without waiting. Only one goroutine may use it.
type Writer struct {
	b     []byte
	n     int
	err   error
	ready func(fd uintptr) // method value of write, made once
}

// NewWriter returns a Writer.
func NewWriter() *Writer {
	w := new(Writer)
	w.ready = w.write
	return w
}

// TryWrite writes as much of b as fits into the socket's buffer and returns how much.
func (w *Writer) TryWrite(socket syscall.RawConn, b []byte) (int, error) {
	w.b, w.n, w.err = b, 0, nil
	err := socket.Control(w.ready) // we don't call Write, because it would prepare for waiting
	w.b = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// write writes as much as the kernel accepts immediately.
func (w *Writer) write(fd uintptr) {
	for w.n < len(w.b) {
		n, err := send(fd, w.b[w.n:])
		switch {
		case err == nil:
			w.n += n
		case transient(err):
		case blocks(err):
			return
		default:
			w.err = err
			return
		}
	}
}

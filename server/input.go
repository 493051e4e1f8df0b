package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/proto"
)

// errFrame reports an invalid length of a request.
var errFrame = errors.New("server: frame length out of range")

// unread returns the input that has arrived and is not parsed yet.
func (c *conn) unread() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.b[c.parsed:]
}

// fill reads at least one byte of input. While it waits for a socket, it holds no
// buffer.
func (c *conn) fill() error {
	if c.raw == nil {
		return c.fillPlain()
	}
	c.readErr = nil
	if err := c.raw.Read(c.wake); err != nil {
		return err
	}
	return c.readErr
}

// fillPlain reads from a connection of unknown type.
func (c *conn) fillPlain() error {
	if w, ok := c.nc.(readWaiter); ok && len(c.unread()) == 0 {
		c.idle()
		if err := w.WaitRead(); err != nil {
			return err
		}
	}
	c.makeRoom()
	b := c.in.b
	n, err := c.nc.Read(b[len(b):cap(b)])
	c.in.b = b[:len(b)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// readWaiter waits until there is input.
type readWaiter interface{ WaitRead() error }

// idle gives back everything that only a busy connection needs.
func (c *conn) idle() {
	c.s.putWork(c)
	if len(c.unread()) == 0 {
		c.s.bufs.put(c.in)
		c.in, c.parsed = nil, 0
		if c.inHeld.Load() != 0 {
			c.inHeld.Store(0)
		}
	}
}

// makeRoom makes room for input. The buffer of a long request grows with the bytes that
// have arrived: a length alone must not cost memory.
func (c *conn) makeRoom() {
	rest := c.unread()
	if len(rest) == 0 && c.in != nil {
		full := len(c.in.b) == cap(c.in.b)
		c.in.b, c.parsed = c.in.b[:0], 0
		if !full || cap(c.in.b) >= bigBuffer {
			return
		}
	}
	room := minRoom
	if len(rest) >= proto.LengthSize {
		missing := proto.LengthSize + int(binary.BigEndian.Uint32(rest)) - len(rest)
		room = max(room, min(missing, 3*len(rest)))
	}
	switch {
	case c.in == nil:
		c.in = c.s.bufs.get(midBuffer)
	case cap(c.in.b)-c.parsed < len(rest)+room || len(rest) == 0:
		next := c.s.bufs.get(max(len(rest)+room, bigBuffer))
		next.b = append(next.b, rest...)
		c.s.bufs.put(c.in)
		c.in = next
		c.inHeld.Store(int64(cap(next.b)))
		if c.s.memory != nil {
			c.s.memory.Wrote(cap(next.b))
		}
	case cap(c.in.b)-len(c.in.b) < room:
		c.in.b = append(c.in.b[:0], rest...)
	default:
		return
	}
	c.parsed = 0
}

// minRoom is the least room for a read.
const minRoom = 2 << 10

// next returns the next complete request, a view into the buffer that is valid until
// the next fill. ok is false if the request is not complete.
func (c *conn) next() (frame []byte, ok bool, err error) {
	b := c.unread()
	if len(b) < proto.LengthSize {
		return nil, false, nil
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 || int(n) > c.s.cfg.JuteMaxBuffer {
		return nil, false, fmt.Errorf("%w: %d", errFrame, n)
	}
	end := proto.LengthSize + int(n)
	if int(n) > c.s.largeAt {
		if err := c.admitLarge(int(n), len(b) >= end); err != nil {
			return nil, false, err
		}
	}
	if len(b) < end {
		return nil, false, nil
	}
	c.parsed += end
	return b[proto.LengthSize:end:end], true, nil
}

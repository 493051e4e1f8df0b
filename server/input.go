package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/proto"
)

// errFrame reports a length that no request may have.
var errFrame = errors.New("server: frame length out of range")

// unread returns what has arrived and not been looked at.
func (c *conn) unread() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.b[c.parsed:]
}

// fill reads what has arrived, at least one byte. On a socket no buffer is held
// while it waits for the first.
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

// fillPlain reads from a connection of which nothing is known.
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

// readWaiter waits until something can be read.
type readWaiter interface{ WaitRead() error }

// idle gives everything back that a connection needs only while it is busy.
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

// makeRoom sees to it that something can be read. The buffer of a long request
// grows with what has arrived of it: a length alone is no reason to spend memory.
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
			c.s.memory.wrote(cap(next.b))
		}
	case cap(c.in.b)-len(c.in.b) < room:
		c.in.b = append(c.in.b[:0], rest...)
	default:
		return
	}
	c.parsed = 0
}

// minRoom is the least a read asks for.
const minRoom = 2 << 10

// next returns the next whole request, a view into the buffer that ends with
// the next fill. ok is false when it has not arrived whole.
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

package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// maxReply is the size in bytes of the largest reply that conn accepts.
const maxReply = 64 << 20

// conn is one connection with a session. Only one goroutine uses it at a time.
type conn struct {
	nc      net.Conn
	r       *bufio.Reader
	out     []byte // requests not written yet
	frame   []byte // a reply that doesn't fit into r
	xid     int32
	timeout time.Duration // of the session
	release func() bool   // stops the context.AfterFunc that closes nc
}

// reply is one frame from the server. body is valid until the next read.
type reply struct {
	proto.ReplyHeader
	body []byte
}

// dial opens a connection and a session. All operations on the connection fail when
// ctx ends.
func dial(ctx context.Context, cfg *Config, addr string) (*conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if cfg.TLS != nil {
		nc = tls.Client(nc, tlsFor(cfg.TLS, addr))
	}
	c := &conn{nc: nc, r: bufio.NewReaderSize(nc, 4096+min(cfg.Window*256, 60<<10)), timeout: cfg.SessionTimeout}
	c.release = context.AfterFunc(ctx, func() { nc.Close() })
	if err := c.open(cfg); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return c, nil
}

// tlsFor sets the server name that the certificate must match.
func tlsFor(c *tls.Config, addr string) *tls.Config {
	if c.ServerName != "" {
		return c
	}
	c = c.Clone()
	c.ServerName, _, _ = net.SplitHostPort(addr)
	return c
}

// open performs the handshake.
func (c *conn) open(cfg *Config) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	ask := proto.ConnectRequest{TimeOut: int32(cfg.SessionTimeout.Milliseconds()), Passwd: make([]byte, proto.PasswordSize), HasReadOnly: true}
	out, mark := proto.BeginFrame(nil)
	if _, err := c.nc.Write(proto.EndFrame(ask.Append(out), mark)); err != nil {
		return err
	}
	frame, err := c.read()
	if err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	var got proto.ConnectResponse
	r := proto.NewReader(frame)
	if got.Decode(&r); r.Err() != nil {
		return fmt.Errorf("opening a session: %w", r.Err())
	}
	if got.TimeOut <= 0 {
		return errors.New("opening a session: it was refused")
	}
	c.timeout = time.Duration(got.TimeOut) * time.Millisecond
	for i := range cfg.Auth {
		if err := c.auth(&cfg.Auth[i]); err != nil {
			return err
		}
	}
	return c.nc.SetWriteDeadline(time.Time{})
}

func (c *conn) auth(packet *proto.AuthPacket) error {
	c.append(proto.XidAuth, proto.OpAuth, packet)
	if err := c.flush(); err != nil {
		return err
	}
	got, err := c.next()
	if err == nil {
		err = got.Err.Err()
	}
	if err != nil {
		return fmt.Errorf("authentication %s: %w", packet.Scheme, err)
	}
	return nil
}

// close ends the session, if the server is still reachable, and the connection.
func (c *conn) close() {
	c.out = c.out[:0]
	c.request(proto.OpCloseSession, nil)
	_ = c.nc.SetDeadline(time.Now().Add(time.Second))
	if c.flush() == nil {
		_, _ = io.Copy(io.Discard, c.nc)
	}
	c.release()
	_ = c.nc.Close()
}

// request appends a request to the output, which flush writes.
func (c *conn) request(op proto.Op, body proto.Record) {
	c.xid++
	c.append(c.xid, op, body)
}

func (c *conn) append(xid int32, op proto.Op, body proto.Record) {
	out, mark := proto.BeginFrame(c.out)
	h := proto.RequestHeader{Xid: xid, Op: op}
	out = h.Append(out)
	if body != nil {
		out = body.Append(out)
	}
	c.out = proto.EndFrame(out, mark)
}

func (c *conn) flush() error {
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// read returns the next frame. If a server sends nothing for the session timeout, we
// consider it lost, as a client with a pending request does.
func (c *conn) read() ([]byte, error) {
	if c.r.Buffered() < proto.LengthSize {
		if err := c.nc.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
			return nil, err
		}
	}
	head, err := c.r.Peek(proto.LengthSize)
	if err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head)))
	if n < 0 || n > maxReply {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	_, _ = c.r.Discard(proto.LengthSize)
	if n <= c.r.Size() {
		b, err := c.r.Peek(n)
		_, _ = c.r.Discard(len(b))
		return b, err
	}
	if cap(c.frame) < n {
		c.frame = make([]byte, n)
	}
	_, err = io.ReadFull(c.r, c.frame[:n])
	return c.frame[:n], err
}

// next returns the next reply or event.
func (c *conn) next() (reply, error) {
	frame, err := c.read()
	if err != nil {
		return reply{}, err
	}
	var got reply
	r := proto.AliasReader(frame)
	if got.Decode(&r); r.Err() != nil {
		return reply{}, r.Err()
	}
	got.body = frame[proto.ReplyHeaderSize:]
	return got, nil
}

// call makes one request, waits for its reply and decodes it into answer unless
// answer is nil. call discards events, so a caller that waits for an event must not
// use it.
func (c *conn) call(op proto.Op, body, answer proto.Record) error {
	c.request(op, body)
	if err := c.flush(); err != nil {
		return err
	}
	for {
		got, err := c.next()
		if err != nil {
			return err
		}
		if got.Xid != c.xid {
			continue
		}
		if got.Err != proto.Ok {
			return got.Err
		}
		if answer == nil {
			return nil
		}
		r := proto.NewReader(got.body)
		answer.Decode(&r)
		return r.Err()
	}
}

// event waits for a watch event. It sends pings, which keep the session alive.
func (c *conn) event() error {
	for {
		if err := c.nc.SetReadDeadline(time.Now().Add(c.timeout / 3)); err != nil {
			return err
		}
		// Peek consumes nothing, so we don't lose part of a frame on a timeout.
		_, err := c.r.Peek(proto.LengthSize)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.append(proto.XidPing, proto.OpPing, nil)
			if err := c.flush(); err != nil {
				return err
			}
			continue
		}
		got, err := c.next()
		if err != nil || got.Xid == proto.XidNotification {
			return err
		}
	}
}

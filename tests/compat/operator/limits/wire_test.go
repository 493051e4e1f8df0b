package limits

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// peer is one connection.
type peer struct {
	t   *testing.T
	nc  net.Conn
	xid int32
}

// dialFrom connects from an address of this machine. A server at its connection limit
// accepts one more connection and closes it immediately. If that happens before the dial
// has checked the connection, the dial fails with that error: dialFrom then returns a
// closed connection like any other.
func dialFrom(t *testing.T, from, addr string) *peer {
	t.Helper()
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", addr)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		var far net.Conn
		nc, far = net.Pipe()
		far.Close()
		return &peer{t: t, nc: nc} // has no deadline, because it is closed
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	must.Do(t, nc.SetDeadline(time.Now().Add(patience)))
	return &peer{t: t, nc: nc}
}

func dial(t *testing.T, addr string) *peer {
	t.Helper()
	return dialFrom(t, "127.0.0.1", addr)
}

// connect begins a session. It reports false if the server closes the connection instead.
func (p *peer) connect() bool {
	req := proto.ConnectRequest{TimeOut: 30000, Passwd: make([]byte, proto.PasswordSize), HasReadOnly: true}
	if _, err := p.nc.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		return false
	}
	_, err := p.frame()
	return err == nil
}

// client returns a connection with a session, and fails the test if it gets none.
func client(t *testing.T, addr string) *peer {
	t.Helper()
	p := dial(t, addr)
	if !p.connect() {
		t.Fatal("no session")
	}
	return p
}

// guest returns a client that retries until there is room: a closed connection counts until
// the server has noticed.
func guest(t *testing.T, addr string) *peer {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		p := dial(t, addr)
		if p.connect() {
			return p
		}
		p.nc.Close()
	}
	t.Fatal("there is never room")
	return nil
}

func (p *peer) frame() ([]byte, error) {
	var head [proto.LengthSize]byte
	if _, err := io.ReadFull(p.nc, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(p.nc, b)
	return b, err
}

// append appends a request.
func (p *peer) append(b []byte, op proto.Op, req proto.Record) []byte {
	p.xid++
	xid := p.xid
	if op == proto.OpPing {
		xid = proto.XidPing
	}
	b, mark := proto.BeginFrame(b)
	h := proto.RequestHeader{Xid: xid, Op: op}
	b = h.Append(b)
	if req != nil {
		b = req.Append(b)
	}
	return proto.EndFrame(b, mark)
}

// reply returns the header of the next reply, or how the connection ended.
func (p *peer) reply() (proto.ReplyHeader, string) {
	b, err := p.frame()
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return proto.ReplyHeader{}, "no answer"
		}
		return proto.ReplyHeader{}, "closed"
	}
	r := proto.NewReader(b)
	var h proto.ReplyHeader
	if h.Decode(&r); r.Err() != nil {
		p.t.Fatal(r.Err())
	}
	return h, h.Err.Error()
}

// ask sends one request and returns a description of the reply.
func (p *peer) ask(op proto.Op, req proto.Record) string {
	_, said := p.askHeader(op, req)
	return said
}

func (p *peer) askHeader(op proto.Op, req proto.Record) (proto.ReplyHeader, string) {
	if _, err := p.nc.Write(p.append(nil, op, req)); err != nil {
		return proto.ReplyHeader{}, "closed"
	}
	return p.reply()
}

// raw sends bytes and describes the reply. A server may close the connection before it has
// read them all.
func (p *peer) raw(b []byte) string {
	if _, err := p.nc.Write(b); err != nil {
		return "closed"
	}
	_, said := p.reply()
	return said
}

func create(path string, size int) *proto.CreateRequest {
	return &proto.CreateRequest{Path: path, Data: make([]byte, size), ACL: proto.OpenACL()}
}

func set(path string, size int) *proto.SetDataRequest {
	return &proto.SetDataRequest{Path: path, Data: make([]byte, size), Version: -1}
}

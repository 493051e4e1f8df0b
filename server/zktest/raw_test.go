package zktest_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// raw is a client that never pings and never reconnects.
type raw struct {
	t       testing.TB
	nc      net.Conn
	session int64
	xid     int32
}

// rawConnect opens a session with a timeout of 30 seconds.
func rawConnect(t testing.TB, zs *zktest.Server) *raw {
	t.Helper()
	nc, err := zs.Dial()
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

// rawOver does the same over an existing connection.
func rawOver(t testing.TB, nc net.Conn) *raw {
	t.Helper()
	t.Cleanup(func() { nc.Close() })
	c := &raw{t: t, nc: nc}
	req := proto.ConnectRequest{TimeOut: 30_000}
	if _, err := nc.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		t.Fatal(err)
	}
	frame, err := c.frame()
	if err != nil {
		t.Fatal(err)
	}
	var resp proto.ConnectResponse
	r := proto.NewReader(frame)
	if resp.Decode(&r); r.Err() != nil || resp.SessionID == 0 {
		t.Fatalf("%+v %v", resp, r.Err())
	}
	c.session = resp.SessionID
	return c
}

func (c *raw) frame() ([]byte, error) {
	var head [proto.LengthSize]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.nc, b)
	return b, err
}

// send sends a request.
func (c *raw) send(op proto.Op, req proto.Record) error {
	c.xid++
	b, mark := proto.BeginFrame(nil)
	h := proto.RequestHeader{Xid: c.xid, Op: op}
	b = req.Append(h.Append(b))
	_, err := c.nc.Write(proto.EndFrame(b, mark))
	return err
}

// call sends a request and returns the code of its reply.
func (c *raw) call(op proto.Op, req proto.Record) (proto.Code, error) {
	if err := c.send(op, req); err != nil {
		return 0, err
	}
	frame, err := c.frame()
	if err != nil {
		return 0, err
	}
	var h proto.ReplyHeader
	r := proto.NewReader(frame)
	h.Decode(&r)
	return h.Err, r.Err()
}

// must is call for requests that must succeed.
func (c *raw) must(op proto.Op, req proto.Record) {
	c.t.Helper()
	if code, err := c.call(op, req); err != nil || code != proto.Ok {
		c.t.Fatalf("%v: %v %v", op, code, err)
	}
}

func (c *raw) create(path string, mode proto.CreateMode) {
	c.t.Helper()
	c.must(proto.OpCreate, &proto.CreateRequest{Path: path, ACL: proto.OpenACL(), Flags: int32(mode)})
}

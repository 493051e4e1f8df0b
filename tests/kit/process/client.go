package process

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Client is a minimal client for the protocol: it sends and receives frames in
// order, and retries nothing.
type Client struct {
	Session  int64
	Password []byte
	Timeout  time.Duration // negotiated
	Limit    time.Duration // for a frame; Patience unless set otherwise

	conn net.Conn
	in   *bufio.Reader
	xid  int32
}

// Reply is one reply: its header and its body.
type Reply struct {
	proto.ReplyHeader
	Body []byte
}

// Connect opens a connection and a session, or attaches to the given session.
func Connect(addr string, session int64, password []byte, timeout time.Duration) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		return nil, err
	}
	return Attach(conn, session, password, timeout, Patience)
}

// Attach is Connect over an open connection, which it closes on error. limit
// bounds the wait for each frame.
func Attach(conn net.Conn, session int64, password []byte, timeout, limit time.Duration) (*Client, error) {
	c := &Client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), Limit: limit}
	if err := c.handshake(session, password, timeout); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) handshake(session int64, password []byte, timeout time.Duration) error {
	if password == nil {
		password = make([]byte, proto.PasswordSize)
	}
	req := proto.ConnectRequest{TimeOut: int32(timeout.Milliseconds()), SessionID: session, Passwd: password, HasReadOnly: true}
	if _, err := c.conn.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		return err
	}
	frame, err := c.frame()
	if err != nil {
		return err
	}
	r := proto.NewReader(frame)
	var resp proto.ConnectResponse
	resp.Decode(&r)
	if r.Err() != nil {
		return r.Err()
	}
	if resp.TimeOut <= 0 {
		return proto.ErrSessionExpired
	}
	c.Session, c.Password, c.Timeout = resp.SessionID, resp.Passwd, time.Duration(resp.TimeOut)*time.Millisecond
	return nil
}

// Send writes requests without waiting for their replies.
func (c *Client) Send(reqs ...Request) error {
	var b []byte
	for _, q := range reqs {
		c.xid++
		var mark int
		b, mark = proto.BeginFrame(b)
		h := proto.RequestHeader{Xid: c.xid, Op: q.Op}
		b = h.Append(b)
		if q.Record != nil {
			b = q.Record.Append(b)
		}
		b = proto.EndFrame(b, mark)
	}
	_, err := c.conn.Write(b)
	return err
}

// Xid returns the number of the request sent last. Only the sending goroutine may
// call it.
func (c *Client) Xid() int32 { return c.xid }

// Request is one request for Send.
type Request struct {
	Op     proto.Op
	Record proto.Record
}

// Receive returns the next reply and skips notifications.
func (c *Client) Receive() (Reply, error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return Reply{}, err
		}
		r := proto.NewReader(frame)
		var h proto.ReplyHeader
		h.Decode(&r)
		if r.Err() != nil {
			return Reply{}, r.Err()
		}
		if h.Xid != proto.XidNotification {
			return Reply{h, r.Rest()}, nil
		}
	}
}

// Do sends one request and returns its reply. An error reply is returned as the
// error.
func (c *Client) Do(op proto.Op, rec proto.Record) (Reply, error) {
	if err := c.Send(Request{op, rec}); err != nil {
		return Reply{}, err
	}
	r, err := c.Receive()
	if err != nil {
		return r, err
	}
	return r, r.Err.Err()
}

// Auth adds an identity to the connection.
func (c *Client) Auth(scheme, auth string) error {
	_, err := c.Do(proto.OpAuth, &proto.AuthPacket{Scheme: scheme, Auth: []byte(auth)})
	return err
}

// Get reads a znode's data.
func (c *Client) Get(path string) ([]byte, proto.Stat, error) {
	reply, err := c.Do(proto.OpGetData, &proto.GetDataRequest{Path: path})
	if err != nil {
		return nil, proto.Stat{}, err
	}
	r := proto.NewReader(reply.Body)
	var resp proto.GetDataResponse
	resp.Decode(&r)
	return resp.Data, resp.Stat, r.Err()
}

// Children lists a znode's children.
func (c *Client) Children(path string) ([]string, error) {
	reply, err := c.Do(proto.OpGetChildren, &proto.GetChildrenRequest{Path: path})
	if err != nil {
		return nil, err
	}
	r := proto.NewReader(reply.Body)
	var resp proto.GetChildrenResponse
	resp.Decode(&r)
	return resp.Children, r.Err()
}

// Create creates a znode with an open ACL.
func (c *Client) Create(path string, data []byte, mode proto.CreateMode) error {
	_, err := c.Do(proto.OpCreate, &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL(), Flags: int32(mode)})
	return err
}

// Close closes the connection but not the session.
func (c *Client) Close() error { return c.conn.Close() }

// frame reads one frame.
func (c *Client) frame() ([]byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(c.Limit)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 64<<20 {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c.in, b)
	return b, err
}

package failover

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

const (
	// retryPause is the pause before a client tries the next server. We keep it short, so
	// that we measure the servers and not the clients.
	retryPause = 5 * time.Millisecond
	// dialLimit bounds an attempt to connect.
	dialLimit = time.Second
	// maxFrame bounds a reply.
	maxFrame = 1 << 20
)

// errExpired is the error for a client with an expired session.
var errExpired = errors.New("the session has expired")

// session is a client's session and its current connection. One goroutine uses it; any
// goroutine may call cut.
type session struct {
	timeout  time.Duration
	id       int64
	password []byte
	zxid     int64 // newest zxid seen

	mu   sync.Mutex
	conn net.Conn // nil while there is none
	in   *bufio.Reader
	xid  int32
}

// connect opens a connection to a server and attaches the session, or creates one.
func (s *session) connect(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, dialLimit)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.conn, s.in, s.xid = conn, bufio.NewReader(conn), 0
	s.mu.Unlock()
	if err = s.handshake(conn); err != nil {
		s.cut()
	}
	return err
}

func (s *session) handshake(conn net.Conn) error {
	password := s.password
	if password == nil {
		password = make([]byte, proto.PasswordSize)
	}
	req := proto.ConnectRequest{LastZxidSeen: s.zxid, TimeOut: int32(s.timeout.Milliseconds()), SessionID: s.id, Passwd: password, HasReadOnly: true}
	if _, err := conn.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		return err
	}
	frame, err := s.frame(conn)
	if err != nil {
		return err
	}
	r := proto.NewReader(frame)
	var resp proto.ConnectResponse
	resp.Decode(&r)
	switch {
	case r.Err() != nil:
		return r.Err()
	case resp.TimeOut <= 0:
		return errExpired
	}
	s.id, s.password = resp.SessionID, resp.Passwd
	s.timeout = time.Duration(resp.TimeOut) * time.Millisecond
	return nil
}

// cut closes the connection, even while a request is waiting.
func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// connected reports whether the session has a connection, as far as it knows.
func (s *session) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil
}

// errCut is the error of a request on a connection that was already cut.
var errCut = errors.New("the connection was cut")

// do sends one request, waits for the reply and returns its body. An error of type
// proto.Code is the server's reply; after any other error the connection is gone and the
// outcome unknown.
func (s *session) do(op proto.Op, rec proto.Record) ([]byte, error) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil {
		return nil, errCut
	}
	body, err := s.exchange(conn, op, rec)
	var code proto.Code
	if err != nil && !errors.As(err, &code) {
		s.cut()
	}
	return body, err
}

func (s *session) exchange(conn net.Conn, op proto.Op, rec proto.Record) ([]byte, error) {
	h := proto.RequestHeader{Op: op, Xid: proto.XidPing}
	if op != proto.OpPing {
		s.xid++
		h.Xid = s.xid
	}
	b, mark := proto.BeginFrame(nil)
	b = h.Append(b)
	if rec != nil {
		b = rec.Append(b)
	}
	if _, err := conn.Write(proto.EndFrame(b, mark)); err != nil {
		return nil, err
	}
	frame, err := s.frame(conn)
	if err != nil {
		return nil, err
	}
	r := proto.NewReader(frame)
	var reply proto.ReplyHeader
	reply.Decode(&r)
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case reply.Xid != h.Xid:
		return nil, fmt.Errorf("a reply to %d, not to %d", reply.Xid, h.Xid)
	}
	s.zxid = max(s.zxid, reply.Zxid)
	return r.Rest(), reply.Err.Err()
}

// frame reads one frame. As in ZooKeeper's clients, it gives up on a server that is
// silent for two thirds of the session timeout.
func (s *session) frame(conn net.Conn) ([]byte, error) {
	if err := conn.SetReadDeadline(time.Now().Add(s.timeout * 2 / 3)); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(s.in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(s.in, b)
	return b, err
}

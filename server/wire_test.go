package server

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// patience is how long a test waits for an expected event.
const patience = 60 * time.Second

// startServer runs a server in memory for the duration of the test. Its super user has superAuth.
func startServer(t testing.TB, change ...func(*Config)) *Server {
	t.Helper()
	cfg := Config{Memory: true, FourLetterWords: []string{"*"}, Auth: Auth{SuperDigest: superDigest}, Env: Env{Formats: allFormats()}}
	for _, f := range change {
		f(&cfg)
	}
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// superAuth is the super user's header, and superDigest the setting for it.
const (
	superAuth   = "digest super:secret"
	superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
)

// wire is a client that speaks in frames.
type wire struct {
	t    testing.TB
	nc   net.Conn
	xid  int32
	resp proto.ConnectResponse
}

// dial opens a connection without a handshake.
func dial(t testing.TB, s *Server) *wire {
	t.Helper()
	nc, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &wire{t: t, nc: nc}
}

// connect opens a connection with a new session.
func connect(t testing.TB, s *Server) *wire {
	t.Helper()
	w := dial(t, s)
	w.handshake(proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true})
	if w.resp.TimeOut == 0 {
		t.Fatal("a new session was refused")
	}
	return w
}

func (w *wire) handshake(req proto.ConnectRequest) {
	w.t.Helper()
	w.write(proto.AppendFrame(nil, req.Append(nil)))
	frame, err := w.frame()
	if err != nil {
		w.t.Fatalf("handshake: %v", err)
	}
	r := proto.NewReader(frame)
	if w.resp.Decode(&r); r.Err() != nil {
		w.t.Fatalf("handshake: %v", r.Err())
	}
}

func (w *wire) write(b []byte) {
	w.t.Helper()
	if _, err := w.nc.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// frame reads one frame.
func (w *wire) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.nc, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(w.nc, b)
	return b, err
}

// appendRequest appends a request; req may be nil.
func appendRequest(b []byte, xid int32, op proto.Op, req proto.Record) []byte {
	b, mark := proto.BeginFrame(b)
	h := proto.RequestHeader{Xid: xid, Op: op}
	b = h.Append(b)
	if req != nil {
		b = req.Append(b)
	}
	return proto.EndFrame(b, mark)
}

// reply is one frame from the server.
type reply struct {
	proto.ReplyHeader
	body []byte
}

func (w *wire) recv() reply {
	w.t.Helper()
	frame, err := w.frame()
	if err != nil {
		w.t.Fatalf("no reply: %v", err)
	}
	return decodeReply(w.t, frame)
}

func decodeReply(t testing.TB, frame []byte) reply {
	t.Helper()
	r := proto.NewReader(frame)
	var h proto.ReplyHeader
	if h.Decode(&r); r.Err() != nil {
		t.Fatalf("reply header: %v", r.Err())
	}
	return reply{h, r.Rest()}
}

// send sends one request and returns its xid.
func (w *wire) send(op proto.Op, req proto.Record) int32 {
	w.t.Helper()
	w.xid++
	w.write(appendRequest(nil, w.xid, op, req))
	return w.xid
}

// call sends a request and returns the next frame, which must be its reply.
func (w *wire) call(op proto.Op, req proto.Record) reply {
	w.t.Helper()
	xid := w.send(op, req)
	got := w.recv()
	if op == proto.OpPing {
		xid = proto.XidPing
	}
	if got.Xid != xid {
		w.t.Fatalf("%v: reply to xid %d, want %d", op, got.Xid, xid)
	}
	return got
}

// must is call for a request that must succeed.
func (w *wire) must(op proto.Op, req proto.Record) reply {
	w.t.Helper()
	got := w.call(op, req)
	if got.Err != proto.Ok {
		w.t.Fatalf("%v: %v", op, got.Err)
	}
	return got
}

// create creates a node on which all clients have all permissions.
func (w *wire) create(path string, data []byte, mode proto.CreateMode) string {
	w.t.Helper()
	got := w.must(proto.OpCreate, &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL(), Flags: int32(mode)})
	var resp proto.CreateResponse
	w.decode(got, &resp)
	return resp.Path
}

// set is setData with any version.
func (w *wire) set(path string, data string) reply {
	w.t.Helper()
	return w.must(proto.OpSetData, &proto.SetDataRequest{Path: path, Data: []byte(data), Version: -1})
}

// get is getData.
func (w *wire) get(path string, watch bool) (string, proto.Stat) {
	w.t.Helper()
	var resp proto.GetDataResponse
	w.decode(w.must(proto.OpGetData, &proto.GetDataRequest{Path: path, Watch: watch}), &resp)
	return string(resp.Data), resp.Stat
}

// decode reads a whole reply body.
func (w *wire) decode(got reply, rec proto.Record) {
	w.t.Helper()
	r := proto.NewReader(got.body)
	if rec.Decode(&r); r.Err() != nil || r.Len() != 0 {
		w.t.Fatalf("body of xid %d: %v, %d bytes left", got.Xid, r.Err(), r.Len())
	}
}

// event reads a notification.
func (w *wire) event() (proto.EventType, string) {
	w.t.Helper()
	got := w.recv()
	if got.Xid != proto.XidNotification {
		w.t.Fatalf("reply to xid %d, want a notification", got.Xid)
	}
	var e proto.WatcherEvent
	w.decode(got, &e)
	if e.State != proto.StateSyncConnected {
		w.t.Errorf("state %d", e.State)
	}
	return proto.EventType(e.Type), e.Path
}

// wantEvent reads a notification and compares it.
func (w *wire) wantEvent(typ proto.EventType, path string) {
	w.t.Helper()
	if gotTyp, gotPath := w.event(); gotTyp != typ || gotPath != path {
		w.t.Errorf("event %d %s, want %d %s", gotTyp, gotPath, typ, path)
	}
}

// wantClosed expects the end of the connection and nothing before.
func (w *wire) wantClosed() {
	w.t.Helper()
	frame, err := w.frame()
	if err == nil {
		w.t.Fatalf("got a frame of %d bytes, want the connection closed", len(frame))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		w.t.Fatal("the connection is still open")
	}
}

package server

import (
	"io"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// FuzzConnection sends arbitrary bytes at the start of a connection and after a
// handshake. The server must continue serving other clients, and send only whole frames.
func FuzzConnection(f *testing.F) {
	hello := (&proto.ConnectRequest{TimeOut: 10000, HasReadOnly: true}).Append(nil)
	f.Add(false, proto.AppendFrame(nil, hello))
	f.Add(false, []byte("ruok"))
	f.Add(false, []byte("stmk12345678"))
	all := []byte{}
	for op := proto.Op(-11); op < 110; op++ {
		all = appendRequest(all, int32(op), op, &proto.GetDataRequest{Path: "/", Watch: true})
	}
	f.Add(true, all)
	var ops []byte
	for _, v := range []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: "/f", ACL: proto.OpenACL(), Flags: 1}},
		{proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/t", ACL: proto.OpenACL(), Flags: 5, TTL: -1}},
		{proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCheck, Req: &proto.CheckVersionRequest{Path: "/"}}}}},
		{proto.OpMultiRead, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetChildren, Req: &proto.GetChildrenRequest{Path: "/"}}}}},
		{proto.OpSetWatches2, &proto.SetWatches2{Data: []string{"/"}, Exist: []string{"/"}, Child: []string{"/"}, Persistent: []string{""}, PersistentRecursive: []string{"/"}}},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/f", ACL: proto.OpenACL(), Version: -1}},
		{proto.OpReconfig, &proto.ReconfigRequest{Joining: "server.9=a:1:2;3", Leaving: "x", NewMembers: proto.NullString}},
		{proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("a:b")}},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/f", Version: -1}},
		{proto.OpCloseSession, nil},
	} {
		ops = appendRequest(ops, 1, v.op, v.req)
	}
	f.Add(true, ops)
	s := startServer(f, func(c *Config) { c.Limits.SessionlessTimeout = time.Hour })
	f.Fuzz(func(t *testing.T, open bool, b []byte) {
		w := dial(t, s)
		defer w.nc.Close()
		if open {
			w.handshake(proto.ConnectRequest{TimeOut: 4000})
		}
		w.nc.Write(b) // the server may refuse it
		// A ping shows that everything before it has been handled. The server may also
		// close the connection, or stay silent if b ends within a frame.
		w.nc.Write(appendRequest(nil, 0, proto.OpPing, nil))
		if open {
			drain(t, w, len(b))
		}
		other := connect(t, s)
		other.must(proto.OpPing, nil)
		other.nc.Close()
	})
}

// drain reads frames until the ping's reply, the end, or until the server waits for the
// rest of a frame.
func drain(t *testing.T, w *wire, sent int) {
	t.Helper()
	for range sent/proto.RequestHeaderSize + 2 {
		w.nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		frame, err := w.frame()
		if err != nil {
			if err == io.ErrUnexpectedEOF {
				t.Fatal("a truncated frame")
			}
			return
		}
		if got := decodeReply(t, frame); got.Xid == proto.XidPing {
			return
		}
	}
}

package server

import (
	"bytes"
	"net"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// transports are the ways to connect to a server.
var transports = map[string]func(t testing.TB, s *Server) *wire{
	"in process": connect,
	"TCP":        func(t testing.TB, s *Server) *wire { return connectTCP(t, s.ClientAddr(), nil) },
}

// onTCP makes a server listen for clients.
func onTCP(c *Config) { c.ClientAddr, c.Limits.MaxClientCnxns = "127.0.0.1:0", -1 }

// All watchers of an event get the same frame. Other output of one client, such as events of
// the same transaction or the reply to the author, doesn't change the output of the others.
func TestEventsOfManyWatchers(t *testing.T) {
	t.Parallel()
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, onTCP)
			watchers := make([]*wire, 8)
			for i := range watchers {
				watchers[i] = connect(t, s)
			}
			author := watchers[3]
			paths := []string{"/a", "/second"}
			for _, path := range paths {
				author.create(path, nil, proto.ModePersistent)
			}
			for range 50 {
				for i, w := range watchers {
					for _, path := range paths[i%2:] { // half of them don't watch the first
						w.get(path, true)
					}
				}
				author.send(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
					{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: paths[0], Version: -1}},
					{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: paths[1], Version: -1}},
				}})
				for i, w := range watchers {
					for _, path := range paths[i%2:] {
						w.wantEvent(proto.EventNodeDataChanged, path)
					}
				}
				if got := author.recv(); got.Xid != author.xid || got.Err != proto.Ok {
					t.Fatalf("the author's reply is %+v", got.ReplyHeader)
				}
			}
		})
	}
}

// A full socket should accept a part of a write, and the rest later.
func TestRepliesToAClientThatReadsLate(t *testing.T) {
	t.Parallel()
	s := startServer(t, onTCP)
	late, w := connectTCP(t, s.ClientAddr(), nil), connect(t, s)
	data := make([]byte, 300_001)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	w.create("/big", data, proto.ModePersistent)
	w.create("/small", data[:100], proto.ModePersistent)
	const requests = 100
	var b []byte
	for i := range int32(requests) {
		path := "/big"
		if i%3 == 0 {
			path = "/small"
		}
		b = appendRequest(b, i, proto.OpGetData, &proto.GetDataRequest{Path: path})
	}
	if err := late.nc.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	late.get("/small", true)
	late.write(b)
	w.set("/small", "an event among the replies")
	sawEvent := false
	for i := int32(0); i < requests; {
		got := late.recv()
		if got.Xid == proto.XidNotification {
			sawEvent = true
			continue
		}
		var resp proto.GetDataResponse
		late.decode(got, &resp)
		want := data
		if i%3 == 0 {
			want = data[:100]
			if resp.Stat.Version == 1 {
				want = []byte("an event among the replies")
			}
		}
		if got.Xid != i || !bytes.Equal(resp.Data, want) {
			t.Fatalf("reply %d is %+v with %d bytes", i, got.ReplyHeader, len(resp.Data))
		}
		i++
	}
	if !sawEvent {
		late.wantEvent(proto.EventNodeDataChanged, "/small")
	}
}

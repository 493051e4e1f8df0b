package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// polledServer starts a server with polled sockets.
func polledServer(t *testing.T, change ...func(*Config)) *Server {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("sockets are polled on Linux only")
	}
	return startServer(t, append(change, onTCP)...)
}

// polled returns the number of polled connections.
func (s *Server) polled() int {
	s.polling.begin.Do(s.polling.start)
	return s.polling.poller.Len()
}

func TestIdleClientsNeedNoGoroutine(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	clients := make([]*wire, 50)
	for i := range clients {
		clients[i] = connectTCP(t, s.ClientAddr(), nil)
	}
	eventually(t, "all are polled", func() bool { return s.polled() == len(clients) })
	for range 3 {
		for _, w := range clients {
			w.must(proto.OpPing, nil)
		}
	}
	if n := s.polled(); n != len(clients) {
		t.Errorf("%d of %d clients that only ping are polled", n, len(clients))
	}
	for _, w := range clients {
		w.nc.Close()
	}
	eventually(t, "none is polled", func() bool { return s.polled() == 0 && sourceOf(s).Server().Connections == 0 })
}

// burst sends n requests at once and checks the order of the replies.
func (w *wire) burst(n int, path string) {
	w.t.Helper()
	var b []byte
	first := w.xid + 1
	for range n {
		w.xid++
		op, req := proto.OpGetData, proto.Record(&proto.GetDataRequest{Path: path})
		if w.xid%3 == 0 {
			op, req = proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1, Data: []byte("x")}
		}
		b = appendRequest(b, w.xid, op, req)
	}
	w.write(b)
	for xid := first; xid <= w.xid; xid++ {
		if got := w.recv(); got.Xid != xid || got.Err != proto.Ok {
			w.t.Fatalf("reply %+v, want to %d", got.ReplyHeader, xid)
		}
	}
}

func TestAClientThatSendsMuchHasItsOwnReader(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	w := connectTCP(t, s.ClientAddr(), nil)
	w.create("/a", nil, proto.ModePersistent)
	for range 3 {
		eventually(t, "it is polled", func() bool { return s.polled() == 1 })
		w.burst(1000, "/a")
		eventually(t, "it has its own", func() bool {
			w.burst(1000, "/a")
			return s.polled() == 0
		})
		for range busyFor + 1 {
			w.must(proto.OpPing, nil)
		}
	}
}

// The connection's own goroutine should read a request of many segments.
func TestALongRequestOnAWorker(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	w := connectTCP(t, s.ClientAddr(), nil)
	w.create("/a", nil, proto.ModePersistent)
	data := make([]byte, 900_000)
	for range 5 {
		w.set("/a", string(data))
		if got, _ := w.get("/a", false); got != string(data) {
			t.Fatalf("got %d bytes", len(got))
		}
	}
}

// More clients than workers make the server wait for them.
func TestClientsThatDoNotReadDelayNoOther(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	w := connectTCP(t, s.ClientAddr(), nil)
	w.create("/big", make([]byte, 1<<20-1000), proto.ModePersistent)
	var b []byte
	for i := range int32(manyRequests - 1) {
		b = appendRequest(b, i, proto.OpGetData, &proto.GetDataRequest{Path: "/big"})
	}
	deaf := make([]*wire, 3*runtime.GOMAXPROCS(0)+pollChunk)
	for i := range deaf {
		deaf[i] = connectTCP(t, s.ClientAddr(), nil)
	}
	for range busyFor { // after its long request
		w.must(proto.OpPing, nil)
	}
	eventually(t, "all are polled", func() bool { return s.polled() == len(deaf)+1 })
	for _, d := range deaf {
		d.write(b)
		w.must(proto.OpPing, nil)
	}
	for range 10 {
		w.must(proto.OpPing, nil)
		w.set("/big", "small")
	}
	for _, d := range deaf {
		for i := range int32(manyRequests - 1) {
			if got := d.recv(); got.Xid != i {
				t.Fatalf("reply to %d, want to %d", got.Xid, i)
			}
		}
	}
	eventually(t, "all are polled again", func() bool { return s.polled() == len(deaf)+1 })
}

// Requests that a client sent right before it hung up are executed, and the server
// closes the connection.
func TestRequestsRightBeforeHangingUp(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	w := connectTCP(t, s.ClientAddr(), nil)
	w.create("/a", nil, proto.ModePersistent)
	const clients = 50
	for i := range clients {
		c := connectTCP(t, s.ClientAddr(), nil)
		if i%2 == 0 {
			eventually(t, "it is polled", func() bool { return s.polled() == 2 })
		}
		c.write(appendRequest(nil, 1, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1}))
		if i%4 < 2 {
			_ = c.nc.(*net.TCPConn).CloseWrite()
		} else {
			_ = c.nc.Close()
		}
		eventually(t, "the server has removed its connection", func() bool { return sourceOf(s).Server().Connections == 1 })
	}
	w.must(proto.OpSync, &proto.SyncRequest{Path: "/a"}) // the last write may be in flight
	if _, stat := w.get("/a", false); stat.Version != clients {
		t.Errorf("%d of %d requests were executed", stat.Version, clients)
	}
}

// The server can also close a polled connection.
func TestAPolledConnectionIsClosed(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	w := connectTCP(t, s.ClientAddr(), nil)
	eventually(t, "it is polled", func() bool { return s.polled() == 1 })
	s.clients.each((*conn).kill)
	w.wantClosed()
	eventually(t, "it is no longer polled", func() bool { return s.polled() == 0 })
}

// Clients with different behaviour at the same time.
func TestPollingUnderLoad(t *testing.T) {
	t.Parallel()
	s := polledServer(t)
	author := connectTCP(t, s.ClientAddr(), nil)
	var all sync.WaitGroup
	for i := range 24 {
		path := fmt.Sprintf("/n%d", i)
		author.create(path, nil, proto.ModePersistent)
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range cost.InShort(2, 6) {
				w := connectTCP(t, s.ClientAddr(), nil)
				most := 1 + random.IntN(3*manyRequests)
				for range 30 {
					w.burst(1+random.IntN(most), path)
				}
				if random.IntN(2) == 0 {
					w.must(proto.OpCloseSession, nil)
					w.wantClosed()
				} else {
					w.nc.Close()
				}
			}
		})
	}
	all.Wait()
	eventually(t, "only the author is left", func() bool { return sourceOf(s).Server().Connections == 1 && s.polled() == 1 })
}

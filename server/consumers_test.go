package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

// setters returns the requests that set a watch.
func setters(path string) map[string]func(w *wire) proto.Code {
	return map[string]func(w *wire) proto.Code{
		"exists": func(w *wire) proto.Code {
			return w.call(proto.OpExists, &proto.ExistsRequest{Path: path, Watch: true}).Err
		},
		"data": func(w *wire) proto.Code {
			return w.call(proto.OpGetData, &proto.GetDataRequest{Path: path, Watch: true}).Err
		},
		"children": func(w *wire) proto.Code {
			return w.call(proto.OpGetChildren, &proto.GetChildrenRequest{Path: path, Watch: true}).Err
		},
		"children2": func(w *wire) proto.Code {
			return w.call(proto.OpGetChildren2, &proto.GetChildrenRequest{Path: path, Watch: true}).Err
		},
		"persistent": func(w *wire) proto.Code {
			return w.call(proto.OpAddWatch, &proto.AddWatchRequest{Path: path, Mode: int32(proto.AddWatchPersistent)}).Err
		},
		"recursive": func(w *wire) proto.Code {
			return w.call(proto.OpAddWatch, &proto.AddWatchRequest{Path: path, Mode: int32(proto.AddWatchPersistentRecursive)}).Err
		},
	}
}

// A client that sets too many watches should get no more, by any request, and keep its
// session. Other clients should not be affected.
func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.MaxWatchBytes = 1 << 20 })
	w, other := connect(t, s), connect(t, s)
	w.create("/a", nil, proto.ModePersistent)
	long := strings.Repeat("p", 100<<10)
	n, code := 0, proto.Ok
	for ; code != proto.ErrQuotaExceeded && n < 20; n++ {
		code = w.call(proto.OpExists, &proto.ExistsRequest{Path: fmt.Sprintf("/%d%s", n, long), Watch: true}).Err
	}
	if n > 11 {
		t.Fatalf("%d watches of %d bytes are set", n, len(long))
	}
	for w.call(proto.OpExists, &proto.ExistsRequest{Path: fmt.Sprintf("/%d", n), Watch: true}).Err != proto.ErrQuotaExceeded {
		n++
	}
	s.memory = limits.NewMemory(1<<40, s.log) // for the metrics
	if metric(s, "memory_watch_bytes") == "0" || metric(s, "memory_watches_refused") == "0" {
		t.Error("the metrics don't show it")
	}
	for name, set := range setters("/a") {
		if code := set(w); code != proto.ErrQuotaExceeded {
			t.Errorf("%s of the one: %v", name, code)
		}
		if code := set(other); code != proto.Ok {
			t.Errorf("%s of the other: %v", name, code)
		}
	}
	w.set("/a", "x")
	if s.watches.Held() > 2<<20 {
		t.Errorf("the watches use %d bytes", s.watches.Held())
	}
	w.must(proto.OpRemoveWatches, &proto.CheckWatchesRequest{Path: "/0" + long, Type: int32(proto.WatcherAny)})
	if got := w.call(proto.OpExists, &proto.ExistsRequest{Path: "/a", Watch: true}); got.Err != proto.Ok {
		t.Errorf("there is room again: %v", got.Err)
	}
	// After a client reconnects, it should get all watches it asks for, or none.
	again := connect(t, s)
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf("/%d%s", i, long[:900]))
	}
	again.send(proto.OpSetWatches2, &proto.SetWatches2{Data: []string{}, Exist: paths, Child: []string{}, Persistent: paths[:1], PersistentRecursive: []string{}})
	again.wantClosed()
}

// tcp connects from the given address.
func tcp(t *testing.T, s *Server, from string) *wire {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.DialContext(context.Background(), "tcp", s.ClientAddr())
	if err != nil {
		t.Skipf("%s is not an address of this machine: %v", from, err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, nc: nc}
	w.handshake(proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true})
	return w
}

// watchMuch sets watches on n paths of 10 kB each.
func (w *wire) watchMuch(n int) {
	for i := range n {
		w.send(proto.OpExists, &proto.ExistsRequest{Path: fmt.Sprintf("/%d%s", i, strings.Repeat("p", 10<<10)), Watch: true})
		if _, err := w.frame(); err != nil {
			return
		}
	}
}

// If all clients together set too many watches, the address with the most should lose
// connections, however it distributes its watches over them. Another address should keep its
// connection, even if that has more watches than any of these.
func TestLargestWatcherIsClosedFirst(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.ClientAddr, c.Limits.MaxWatchBytes, c.Limits.MaxWatchBytesTotal = "127.0.0.1:0", 2<<20, 2<<20
	})
	modest := tcp(t, s, "127.0.0.2")
	modest.watchMuch(50)
	modest.create("/a", nil, proto.ModePersistent)
	modest.get("/a", true)
	var greedy []*wire
	for range 20 {
		w := tcp(t, s, "127.0.0.3")
		w.watchMuch(15)
		greedy = append(greedy, w)
	}
	eventually(t, "all watches together are few again", func() bool { return s.watches.Held() <= 2<<20 })
	if len(greedy) == 0 || s.stats.Dropped.Load() == 0 {
		t.Fatal("no client was closed")
	}
	w := tcp(t, s, "127.0.0.2")
	w.set("/a", "y")
	modest.wantEvent(proto.EventNodeDataChanged, "/a")
}

// While memory is short, the server should close the clients that use the most. It should
// refuse writes only if that doesn't help.
func TestClientsAreClosedBeforeWritesAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const ceiling = 10 << 20
	g := limits.NewMemory(ceiling, s.log)
	g.Shed = s.shedForMemory
	now := time.Unix(1000, 0)
	rest := int64(8 << 20)
	g.Read = func() limits.MemoryUse { u := rest + s.watches.Held(); return limits.MemoryUse{Live: u, Heap: u} }
	g.Collect, g.Clock = func() {}, func() time.Time { return now }
	s.memory = g
	small, big := connect(t, s), connect(t, s)
	small.watchMuch(20)
	big.watchMuch(300)
	g.Check()
	if g.Full.Load() {
		t.Error("writes are refused while a client holds a third of the memory")
	}
	big.wantClosed()
	eventually(t, "its memory is free", func() bool { return s.watches.Held() < 1<<20 })
	now = now.Add(2 * limits.ShedPatience)
	g.Check()
	if g.Full.Load() {
		t.Error("writes are refused although there is room")
	}
	small.create("/a", nil, proto.ModePersistent)
	rest = ceiling
	g.Check()
	if !g.Full.Load() {
		t.Error("the tree fills the memory, and writes are still accepted")
	}
	small.get("/a", false)
}

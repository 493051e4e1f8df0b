package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// TestLookAhead: lookAhead counts whole requests, as many as can be prefetched
// together, and at least one.
func TestLookAhead(t *testing.T) {
	t.Parallel()
	s := &Server{tree: tree.New()}
	get := frame(proto.OpGetData, &proto.GetDataRequest{Path: "/zookeeper"})
	set := frame(proto.OpSetData, &proto.SetDataRequest{Path: "/zookeeper", Version: -1})
	times := func(n int, f []byte) (b []byte) {
		for range n {
			b = append(b, f...)
		}
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		want int
	}{
		"nothing":          {nil, 1},
		"a length":         {get[:4], 1},
		"one":              {get, 1},
		"two":              {times(2, get), 2},
		"two and a half":   {times(3, get)[:2*len(get)+len(get)/2], 2},
		"many":             {times(100, get), tree.PrefetchMax},
		"writes":           {times(100, set), 1},
		"behind a write":   {append(times(3, set), times(3, get)...), 1},
		"before a write":   {append(times(3, get), append(times(3, set), times(3, get)...)...), 3},
		"hostile lengths":  {append(times(1, get), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0), 1},
		"too short a one":  {append(times(1, get), 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0), 1},
		"a path of 2 GiB":  {append(times(1, get), 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff), 1},
		"a path of nobody": {append(times(1, get), 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 4), 1},
	} {
		for _, locked := range []bool{false, true} {
			conn := &conn{s: s, in: &buffer{b: c.in}}
			if locked {
				s.tree.RLock()
			}
			if got := conn.lookAhead(&work{locked: locked}); got != c.want {
				t.Errorf("%s: %d, want %d", name, got, c.want)
			}
			if locked {
				s.tree.RUnlock()
			}
			s.tree.Lock() // no other goroutine holds it
			s.tree.Advance(1)
			s.tree.Unlock()
		}
	}
}

// TestLookAheadBehindTheLog: requests that are answered later aren't prefetched now.
func TestLookAheadBehindTheLog(t *testing.T) {
	t.Parallel()
	get := frame(proto.OpGetData, &proto.GetDataRequest{Path: "/zookeeper"})
	c := &conn{s: &Server{tree: tree.New()}, in: &buffer{b: append(get, get...)}}
	c.waiting.Store(1)
	if got := c.lookAhead(new(work)); got != 1 {
		t.Errorf("it looks at %d requests", got)
	}
	c.waiting.Store(0)
	if got := c.lookAhead(new(work)); got != 2 {
		t.Errorf("it looks at %d requests where nothing waits", got)
	}
}

// frame returns a request with its length prefix.
func frame(op proto.Op, req proto.Record) []byte {
	h := proto.RequestHeader{Xid: 1, Op: op}
	return proto.AppendFrame(nil, req.Append(h.Append(nil)))
}

// TestBehind: Behind names the reads after a write, up to the next write.
func TestBehind(t *testing.T) {
	t.Parallel()
	h := handler{new(Server)}
	c := new(conn)
	body := func(path string) []byte { return (&proto.ExistsRequest{Path: path}).Append(nil) }
	later := &pending{c: c, op: proto.OpExists, body: body("/later")}
	write := &pending{c: c, op: proto.OpSetData, inFlight: true, next: later}
	second := &pending{c: c, op: proto.OpExists, body: body("/second"), next: write}
	ping := &pending{c: c, op: proto.OpPing, next: second}
	first := &pending{c: c, op: proto.OpGetData, body: body("/first"), next: ping}
	for _, x := range []struct {
		waiter any
		want   string
	}{
		{&pending{c: c, inFlight: true, next: first}, "/before/first/second"},
		{write, "/before/later"},
		{later, "/before"},
		{&pending{next: first}, "/before"},
		{func() {}, "/before"},
		{nil, "/before"},
	} {
		got := ""
		for _, p := range h.Behind(x.waiter, []string{"/before"}) {
			got += p
		}
		if got != x.want {
			t.Errorf("%v: %s, want %s", x.waiter, got, x.want)
		}
	}
	if got := len(h.Behind(&pending{c: c, next: first}, make([]string, tree.PrefetchMax))); got != tree.PrefetchMax {
		t.Errorf("%d paths, want no more", got)
	}
}

package server

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// watchedByMany starts a server with lists of watches that are much longer than the memory
// that they use in the server: many sessions watch one long path.
func watchedByMany(t *testing.T, change ...func(*Config)) *Server {
	s := startServer(t, change...)
	s.long.Time = 50 * time.Millisecond
	path := "/" + strings.Repeat("p", 500<<10)
	connect(t, s).create(path, nil, proto.ModePersistent)
	for range 20 {
		connect(t, s).get(path, true)
	}
	return s
}

// Clients that ask for lists and don't read them can't fill the server's memory, and
// don't keep others from their lists.
func TestUnreadListsAreBounded(t *testing.T) {
	cost.MeasuresMemory(t)
	s := watchedByMany(t)
	size := len(answer(t, s, "wchc"))
	before := heapInUse()
	for range 50 {
		dial(t, s).write([]byte("wchc"))
	}
	eventually(t, "a client that reads gets its list", func() bool {
		w := dial(t, s)
		w.write([]byte("wchc"))
		n, err := io.Copy(io.Discard, w.nc)
		return err == nil && int(n) == size
	})
	if grown := heapInUse() - before; grown > int64(2*size) {
		t.Errorf("the heap grew by %d bytes; one answer has %d", grown, size)
	}
}

// The same over HTTP.
func TestUnreadListsOverHTTPAreBounded(t *testing.T) {
	cost.MeasuresMemory(t)
	s := watchedByMany(t, withAdmin)
	before := heapInUse()
	for range 20 {
		nc, err := net.Dial("tcp", s.AdminAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := io.WriteString(nc, "GET /commands/watches HTTP/1.1\r\nHost: h\r\nAuthorization: "+superAuth+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(0)
	eventually(t, "a client that reads gets its list", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.AdminAddr()+"/commands/watches", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", superAuth)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false // cut off before the answer began: this machine is slow
		}
		defer resp.Body.Close()
		size, err = io.Copy(io.Discard, resp.Body)
		return err == nil && size > 20*500<<10
	})
	if grown := heapInUse() - before; grown > 2*size {
		t.Errorf("the heap grew by %d bytes; one answer has %d", grown, size)
	}
}

// heapInUse returns the live bytes of the heap.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

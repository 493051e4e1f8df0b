package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/internal/pipe"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// chanListener accepts the connections sent to it.
type chanListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func newChanListener() *chanListener {
	return &chanListener{make(chan net.Conn), make(chan struct{})}
}

func (l *chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *chanListener) Close() error   { close(l.done); return nil }
func (l *chanListener) Addr() net.Addr { return pipe.Addr("listener") }

// openTo opens n connections to addr and sends the text on each. closed counts the
// connections that the server has closed without another byte.
func openTo(t *testing.T, n int, addr, text string) (closed *atomic.Int32) {
	t.Helper()
	closed = new(atomic.Int32)
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, text) // the server may have closed it
		go func() {
			if _, err := io.Copy(io.Discard, conn); !errors.Is(err, net.ErrClosed) {
				closed.Add(1)
			}
		}()
	}
	return closed
}

// Clients that announce a body and don't send it should get an answer immediately, and
// should not keep others from a port.
func TestMissingBodiesDoNotBlockAPort(t *testing.T) {
	t.Parallel()
	const head = " HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n"
	begins := []string{"POST /commands/restore" + head + "\r\n", "GET /nothing" + head + "\r\n", "GET /livez" + head + "Connection: keep-alive\r\n\r\n"}
	for _, begin := range cost.InShort(begins[:1], begins) {
		s := startServer(t, alone, withAdmin, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0", Handler: metrics.Handler} })
		for addr, path := range map[string]string{s.AdminAddr(): "/livez", s.MetricsAddr(): "/metrics"} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			start := time.Now()
			if _, err = io.WriteString(conn, begin); err == nil {
				var resp *http.Response
				if resp, err = http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					resp.Body.Close()
				}
			}
			if took := time.Since(start); err != nil || took > httpport.BodyTimeout {
				t.Errorf("%q: answered after %v: %v", begin, took, err)
			}
			openTo(t, httpport.MaxConns+20, addr, begin)
			if code, body := fetch(t, "http://"+addr+path); code != http.StatusOK {
				t.Errorf("%q: then %s gets %d %s", begin, path, code, body)
			}
		}
	}
}

// A port that accepts TLS and plaintext bounds the connections that have not sent
// anything.
func TestSilentConnectionsOfAUnifiedPortAreBounded(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	options := a.options()
	options.ClientAuth = "none"
	s := startServer(t, alone, func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0", TLS: &AdminTLS{KeyStores: options}} })
	closed := openTo(t, httpport.MaxConns+50, s.AdminAddr(), "")
	eventually(t, "the oldest connections are closed", func() bool { return closed.Load() >= 50 })
	for _, scheme := range []string{"http", "https"} {
		if code, _, err := fetchTLS(t, scheme+"://"+s.AdminAddr()+"/livez", a.client(nil)); code != http.StatusOK {
			t.Errorf("%s: %d %v", scheme, code, err)
		}
	}
	if n := closed.Load(); n > 60 {
		t.Errorf("%d connections were closed", n)
	}
}

// A client that asks for key updates and doesn't read the answers can be closed to make
// room for others, and when the server stops.
func TestUnreadKeyUpdateOverHTTP(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, only := range []bool{false, true} {
		s := startServer(t, alone)
		l := newChanListener()
		hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
		srv, err := s.serveHTTP("admin.serverPort", l, &AdminTLS{Config: quietTLS(t, a), Only: only}, hello, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var ends []*closingConn
		attack := func() {
			nc, end := bufferless(t)
			l.conns <- end
			requestKeyUpdate(t, nc, a.client(nil))
			ends = append(ends, end)
		}
		attack()
		attack()
		for range httpport.MaxConns {
			_, end := bufferless(t)
			l.conns <- end
		}
		ends[0].wantClosed(t)
		ends[1].wantClosed(t)
		attack()
		closed := make(chan error)
		go func() { closed <- srv.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("the HTTP server doesn't stop")
		}
		ends[2].wantClosed(t)
	}
}

// Requests that wait for their turn to get a list can't keep others from a port.
func TestWaitingRequestsDoNotBlockAPort(t *testing.T) {
	t.Parallel()
	s := startServer(t, alone, withAdmin)
	s.long.Time = time.Hour
	for range limits.MaxLongAnswers {
		defer s.long.Begin(nil, func() {}).End()
	}
	openTo(t, httpport.MaxConns+20, s.AdminAddr(), "GET /commands/connections HTTP/1.1\r\nHost: h\r\nAuthorization: "+superAuth+"\r\n\r\n")
	if code, body := fetch(t, fmt.Sprintf("http://%s/livez", s.AdminAddr())); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}

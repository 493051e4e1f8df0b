package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// oneConn is a listener with a single connection.
type oneConn struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

// dialAdmin serves h at the other end of the returned connection.
func dialAdmin(t *testing.T, h http.Handler) net.Conn {
	client, server := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conns <- server
	s := &http.Server{Handler: h, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = client.Close()
		close(l.done)
		_ = s.Close()
		<-ended
	})
	return client
}

func newLarge() *large { return &large{vault{fake: fake{role: "standalone"}}} }

// large is a vault with a state of one megabyte that counts the bytes it receives.
type large struct{ vault }

func (*large) Export(context.Context) (*Export, error) {
	content := strings.Repeat("x", 1<<20)
	return &Export{Bytes: int64(len(content)), Content: io.NopCloser(strings.NewReader(content))}, nil
}

func (v *large) Restore(ctx context.Context, r io.Reader) (int64, error) {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, fmt.Errorf("nothing was changed: %w", err)
	}
	time.Sleep(time.Hour) // the restore itself
	return 26, ctx.Err()
}

// A restore should fail if its body stalls, but not if it is slow or long.
func TestRestoreNeedsProgress(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := dialAdmin(t, Handler(newLarge(), DefaultURL, Options{}))
			const size = 300 << 10
			_, err := fmt.Fprintf(c, "POST /commands/restore HTTP/1.1\r\nHost: a\r\nAuthorization: digest root:pw\r\nContent-Length: %d\r\n\r\n", size)
			for sent := 0; err == nil && sent < size && !(stops && sent >= size/2); sent += 50 << 10 {
				time.Sleep(20 * time.Second)
				_, err = io.WriteString(c, strings.Repeat("x", 50<<10))
			}
			if err != nil {
				t.Fatal(err)
			}
			last := time.Now()
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			must.Do(t, err)
			defer r.Body.Close()
			took := time.Since(last)
			if stops && (took > time.Minute || r.StatusCode != http.StatusInternalServerError) {
				t.Errorf("a body that stopped: %s after %v", r.Status, took)
			}
			if !stops && (took < time.Hour || r.StatusCode != http.StatusOK) {
				t.Errorf("a slow body: %s after %v", r.Status, took)
			}
		})
	}
}

// A snapshot should fail if the client doesn't read it, but not if it reads slowly.
func TestSnapshotNeedsProgress(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := dialAdmin(t, Handler(newLarge(), DefaultURL, Options{}))
			must.Get(io.WriteString(c, "GET /commands/snapshot HTTP/1.1\r\nHost: a\r\nAuthorization: digest root:pw\r\n\r\n"))(t)
			r, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			got := 0
			for b := make([]byte, 32<<10); err == nil; {
				time.Sleep(10 * time.Second)
				if stops && got > 256<<10 {
					time.Sleep(time.Hour)
				}
				var n int
				n, err = io.ReadFull(r.Body, b)
				got += n
			}
			if whole := got == 1<<20; whole == stops {
				t.Errorf("%d bytes received, the client stops: %v", got, stops)
			}
		})
	}
}

// Each snapshot needs a file for the whole state, so we should send only a few
// concurrently.
func TestSnapshotsAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := Handler(newLarge(), DefaultURL, Options{})
		for range maxExports {
			c := dialAdmin(t, h)
			must.Get(io.WriteString(c, "GET /commands/snapshot HTTP/1.1\r\nHost: a\r\nAuthorization: digest root:pw\r\n\r\n"))(t)
		}
		synctest.Wait()
		if w := state(t, h, "GET", "snapshot", "digest root:pw", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one too many: %d %v %s", w.Code, w.Header(), w.Body)
		}
		time.Sleep(time.Hour) // the other clients read nothing
		if w := state(t, h, "GET", "snapshot", "digest root:pw", ""); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d", w.Code)
		}
	})
}

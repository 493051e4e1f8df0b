package httpport

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// The server should close the connection that has waited for its client for longest. If
// hardly any has, it should close the oldest one, but never an authorized transfer.
func TestWhichHTTPConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c conns
		open := func() *conn {
			nc, _ := net.Pipe()
			h := &conn{Conn: nc, of: &c, since: time.Now()}
			if victim := c.add(h); victim != nil {
				t.Fatal("closed before there were too many")
			}
			time.Sleep(time.Nanosecond)
			return h
		}
		request := func(h *conn) *http.Request {
			r := must.Get(http.NewRequestWithContext(c.context(t.Context(), h), http.MethodGet, "/", nil))(t)
			return r
		}
		transfer, busy, slow := open(), open(), open()
		for _, h := range []*conn{transfer, busy, slow} {
			c.begin(h)
			time.Sleep(time.Nanosecond)
		}
		idle := open()
		Keep(request(transfer))
		unread := make(chan error)
		go func() {
			_, err := slow.Write([]byte("x"))
			unread <- err
		}()
		synctest.Wait()
		for len(c.open) < MaxConns {
			c.begin(open())
		}
		next := func() *conn {
			last := &conn{of: &c, since: time.Now()}
			victim := c.add(last)
			c.mu.Lock()
			c.open = slices.DeleteFunc(c.open, func(h *conn) bool { return h == last })
			c.mu.Unlock()
			return victim
		}
		if next() != busy {
			t.Error("the oldest request makes room for a burst, except for transfers")
		}
		time.Sleep(evictAfter)
		if next() != idle {
			t.Error("the idle connection has waited for longest")
		}
		ctx := request(slow).Context()
		_ = idle.Close()
		c.begin(open())
		if next() != slow {
			t.Error("a client that doesn't read its answer makes room")
		}
		_ = slow.Close()
		if err := <-unread; err == nil || !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("the request continues: %v, %v", err, ctx.Err())
		}
		c.end(transfer)
		c.begin(transfer)
		c.begin(open())
		if time.Sleep(time.Second); next() != busy {
			t.Error("no client is waited for: the oldest request makes room")
		}
		c.close()
		if next() == nil {
			t.Error("a closed server accepts a connection")
		}
	})
}

// The metrics port should log connections that it can't accept in the same way.
func TestRefusedConnectionsOfTheMetricsPort(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	refused := limits.NewComplaints(slog.New(slog.NewTextHandler(&out, nil)))
	port := log.New(httpLog{&Options{
		Setting:  "metricsProvider.httpPort",
		Complain: func(msg string, args ...any) { refused.Warn(0, msg, args...) },
	}, nil}, "", 0)
	for range 3 {
		port.Print("http: Accept error: accept tcp: too many open files; retrying in 5ms")
	}
	if text := out.String(); strings.Count(text, "cannot accept a client of metricsProvider.httpPort") != 1 || !strings.Contains(text, "too many open files") {
		t.Errorf("logged: %s", text)
	}
}

package overview_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/cli/overview"
)

const srvr = `Zookeeper version: 3.9.5-aa3c2b9dd1b6c6ae6b7d2eb1a2a1e2d3c4b5a697, built on 2025-01-01 00:00 UTC
Latency min/avg/max: 0/1.5/12
Received: %d
Sent: 90
Connections: 3
Outstanding: 1
Zxid: 0x%x
Mode: %s
Node count: 7
`

// fake is a network of servers that answer four-letter words.
type fake map[string]func(word string) string

func (f fake) dial(_ context.Context, _, address string) (net.Conn, error) {
	answer, ok := f[address]
	if !ok {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		word := make([]byte, 4)
		if _, err := io.ReadFull(bufio.NewReader(far), word); err == nil {
			fmt.Fprint(far, answer(string(word)))
		}
	}()
	return near, nil
}

func TestLook(t *testing.T) {
	t.Parallel()
	received := 100
	now := time.Unix(1_000_000, 0)
	words := fake{
		"a:1": func(word string) string {
			if word == "mntr" {
				return "zk_version\t3.9.5-x\nzk_watch_count\t5\nzk_ephemerals_count\t2\nzk_server_state\tleader\nzk_packets_received\t" + fmt.Sprint(received) + "\n"
			}
			return fmt.Sprintf(srvr, received, int64(2)<<32|9, "leader")
		},
		"b:1": func(word string) string {
			if word == "mntr" {
				return "mntr is not executed because it is not in the whitelist.\n"
			}
			return fmt.Sprintf(srvr, 50, int64(2)<<32|6, "follower")
		},
		"c:1": func(string) string { return "This ZooKeeper instance is not currently serving requests\n" },
	}
	w := &overview.Watcher{Addresses: []string{"a:1", "b:1", "c:1", "d:1"}, Dial: words.dial, Now: func() time.Time { return now }}
	first := w.Look(t.Context())
	now, received = now.Add(2*time.Second), 140
	second := w.Look(t.Context())

	a, b, c, d := second.Servers[0], second.Servers[1], second.Servers[2], second.Servers[3]
	if first.Servers[0].Requests != nil || a.Requests == nil || *a.Requests != 20 || *b.Requests != 0 {
		t.Errorf("requests: %v, %v", a.Requests, b.Requests)
	}
	if a.Mode != "leader" || a.Error+a.Note != "" || *a.Watches != 5 || *a.Ephemerals != 2 || *a.LatencyAvg != 1.5 || *a.Znodes != 7 || *a.Connections != 3 {
		t.Errorf("%+v", a)
	}
	if b.Mode != "follower" || b.Watches != nil || !strings.Contains(b.Note, "whitelist") || b.Version != "3.9.5" || *second.Lag(1) != 3 || *second.Lag(0) != 0 {
		t.Errorf("%+v", b)
	}
	if c.Mode != "" || !strings.Contains(c.Error, "does not serve clients") || second.Lag(2) != nil {
		t.Errorf("%+v", c)
	}
	if d.Mode != "" || d.Error != "connection refused" {
		t.Errorf("%+v", d)
	}
	// A restarted server has received less than before.
	now, received = now.Add(time.Second), 3
	if third := w.Look(t.Context()); third.Servers[0].Requests != nil {
		t.Errorf("requests of a server that was started anew: %v", *third.Servers[0].Requests)
	}
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/commands/monitor":
			fmt.Fprint(w, `{"server_state":"standalone","watch_count":4,"avg_latency":0.25,"command":"monitor","error":null}`)
		case "/commands/server_stats":
			fmt.Fprint(w, `{"server_stats":{"last_processed_zxid":9007199254740993},"error":null}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	w := &overview.Watcher{Addresses: []string{"127.0.0.1:2181"}, Admin: server.URL}
	s := w.Look(t.Context()).Servers[0]
	if s.Error != "" || s.Mode != "standalone" || *s.Watches != 4 || *s.LatencyAvg != 0.25 || *s.Zxid != 9007199254740993 {
		t.Errorf("%+v", s)
	}
	w = &overview.Watcher{Addresses: []string{"127.0.0.1:2181"}, Admin: server.URL + "/elsewhere"}
	if s := w.Look(t.Context()).Servers[0]; !strings.Contains(s.Error, "404") {
		t.Errorf("%+v", s)
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	w = &overview.Watcher{Addresses: []string{"127.0.0.1:2181"}, Admin: port}
	if s := w.Look(t.Context()).Servers[0]; s.Mode != "standalone" {
		t.Errorf("%+v", s)
	}
}

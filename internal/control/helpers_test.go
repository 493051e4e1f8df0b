package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/control"
	"github.com/zkgo/zkgo/server/zktest"
)

// patience limits how long a test waits for an expected event.
const patience = 60 * time.Second

// asked collects the successful requests of the tests, as "METHOD /path".
var asked sync.Map

// TestMain also reports endpoints that the tests have not used.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		code = unasked()
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func unasked() (code int) {
	for _, e := range control.Endpoints() {
		if _, ok := asked.Load(e); !ok {
			fmt.Fprintf(os.Stderr, "no test calls %s successfully\n", e)
			code = 1
		}
	}
	return code
}

// pattern returns the endpoint that a URL belongs to.
func pattern(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	return method + " " + regexp.MustCompile(`/(sessions|servers|faults|snapshots|recordings)/[^/]+`).ReplaceAllString(path, "/$1/{id}")
}

// bench is a test server with its log.
type bench struct {
	t *testing.T
	*control.TestServer
	http *http.Client
	mu   sync.Mutex
	log  []string
}

// start starts n servers, or one standalone server if n is 0.
func start(t *testing.T, n int, opts ...zktest.Option) *bench {
	t.Helper()
	transport := &http.Transport{}
	b := &bench{t: t, http: &http.Client{Transport: transport, Timeout: 2 * patience}}
	ts, err := control.Start(control.Config{Servers: n, Options: opts, Log: func(line string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.log = append(b.log, line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.TestServer = ts
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := ts.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// logged reports whether a line of the log contains text.
func (b *bench) logged(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.log, func(line string) bool { return strings.Contains(line, text) })
}

// ask sends one request and returns the status and the response. It may be called
// from any goroutine.
func (b *bench) ask(method, path, body string) (int, map[string]any) {
	req, err := http.NewRequestWithContext(context.Background(), method, b.Ready().Control+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
		return 0, nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err != nil || d.Decode(&m) != nil || resp.Header.Get("Content-Type") != "application/json" {
		b.t.Errorf("%s %s: %s %s, no JSON: %v %q", method, path, resp.Status, resp.Header, err, data)
	}
	if resp.StatusCode == http.StatusOK {
		asked.Store(pattern(method, path), true)
	}
	return resp.StatusCode, m
}

// do is ask for requests that must succeed.
func (b *bench) do(method, path, body string) map[string]any {
	b.t.Helper()
	status, m := b.ask(method, path, body)
	if status != http.StatusOK {
		b.t.Fatalf("%s %s %s: %d %v", method, path, body, status, m)
	}
	return m
}

// want sends one request and compares a field of the response.
func (b *bench) want(method, path, body, field string, want any) {
	b.t.Helper()
	m := b.do(method, path, body)
	if got, want := fmt.Sprint(m[field]), fmt.Sprint(want); got != want {
		b.t.Errorf("%s %s %s: %s is %s, want %s; %v", method, path, body, field, got, want, m)
	}
}

// client connects a client over TCP.
func (b *bench) client() *client.Client {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	c, err := client.Connect(ctx, b.Ready().ConnectString, client.WithSessionTimeout(10*time.Second))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// sid formats the id of a client's session as the endpoints do.
func sid(c *client.Client) string { return fmt.Sprintf("0x%x", uint64(c.Session().ID)) }

// list returns a field that is a list of objects.
func list(m map[string]any, field string) []map[string]any {
	var all []map[string]any
	for _, one := range m[field].([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}

package cli

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

// told is a shell connected to an in-memory server, with its output.
type told struct {
	t        *testing.T
	shell    *Shell
	out, err shared
}

// shared is a text to which events may be written at any time.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// take returns and clears the text.
func (s *shared) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

// newTold returns a connected shell.
func newTold(t *testing.T, zs *zktest.Server, change ...func(*Config)) *told {
	t.Helper()
	b := &told{t: t}
	config := Config{
		Server: "server", Out: &b.out, Err: &b.err, Version: "3.9", Quiet: true,
		Options: []client.Option{client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return zs.Dial() })},
	}
	for _, f := range change {
		f(&config)
	}
	b.shell = New(config)
	if err := b.shell.Connect(config.Server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.shell.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	if err := b.shell.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// do runs a line and returns the output on both streams and the exit code.
func (b *told) do(line string) (out, err string, code int) {
	b.t.Helper()
	before := b.out.take()
	b.err.take()
	code, _ = b.shell.Line(b.t.Context(), line)
	if strings.Contains(before, "WATCHER") { // events since the last line
		return before + b.out.take(), b.err.take(), code
	}
	return b.out.take(), b.err.take(), code
}

// want runs a line and compares the result.
func (b *told) want(line, out, err string, code int) {
	b.t.Helper()
	if gotOut, gotErr, gotCode := b.do(line); gotOut != out || gotErr != err || gotCode != code {
		b.t.Errorf("%s\ngot  %q, %q, %d\nwant %q, %q, %d", line, gotOut, gotErr, gotCode, out, err, code)
	}
}

package cli

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

// told is a shell on a server in memory, and what it prints.
type told struct {
	t        *testing.T
	shell    *Shell
	out, err strings.Builder
}

// newTold returns a shell that is connected.
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

// do runs a line and returns what it printed on both streams and its exit code.
func (b *told) do(line string) (out, err string, code int) {
	b.t.Helper()
	b.out.Reset()
	b.err.Reset()
	code, _ = b.shell.Line(b.t.Context(), line)
	return b.out.String(), b.err.String(), code
}

// want runs a line and compares.
func (b *told) want(line, out, err string, code int) {
	b.t.Helper()
	if gotOut, gotErr, gotCode := b.do(line); gotOut != out || gotErr != err || gotCode != code {
		b.t.Errorf("%s\ngot  %q, %q, %d\nwant %q, %q, %d", line, gotOut, gotErr, gotCode, out, err, code)
	}
}

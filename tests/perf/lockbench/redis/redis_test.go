package redis

import (
	"context"
	"errors"
	"net"
	"testing"
)

// TestAnswers reads every kind of reply.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wire, want string
		err        bool
	}{
		{"+OK\r\n", "OK", false},
		{":12\r\n", "12", false},
		{"-ERR no\r\n", "", true},
		{"$5\r\na\r\nbc\r\n", "a\r\nbc", false},
		{"$-1\r\n", "", true},
		{"*3\r\n$1\r\na\r\n$-1\r\n:3\r\n", "a\n\n3", false},
		{"?\r\n", "", true},
		{"\r\n", "", true},
		{"$x\r\n", "", true},
	} {
		here, there := net.Pipe()
		go func() {
			b := make([]byte, 1000)
			if n, err := there.Read(b); err == nil && string(b[:n]) == "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" {
				_, _ = there.Write([]byte(c.wire))
			}
			there.Close()
		}()
		got, err := newConn(here).Do(context.Background(), "GET", "k")
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%q: %q, %v", c.wire, got, err)
		}
		if c.wire == "$-1\r\n" && !errors.Is(err, ErrNil) {
			t.Errorf("nil: %v", err)
		}
		here.Close()
	}
}

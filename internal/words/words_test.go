package words

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// answering connects to a server that answers each word with the same text.
func answering(text string) Dial {
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			if _, err := io.ReadFull(there, make([]byte, 4)); err == nil {
				_, _ = io.WriteString(there, text)
			}
		}()
		return here, nil
	}
}

// TestAsk: an answer that lacks the facts that we asked for is an error that says why.
func TestAsk(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":                             io.EOF,
		"\x15\x03\x01\x00\x02\x02\x50": ErrTLS,
		"mntr is not executed because it is not in the whitelist.\n":  ErrNotListed,
		"This ZooKeeper instance is not currently serving requests\n": ErrNotServing,
		"zk_version\t3.9.5\n": nil,
	} {
		answer, err := Ask(t.Context(), answering(text), "zk1:2181", "mntr")
		if !errors.Is(err, want) || err == nil && answer != text {
			t.Errorf("%q: %q %v", text, answer, err)
		}
		if err != nil && answer != "" {
			t.Errorf("%q is an answer, and an error %v", answer, err)
		}
	}
	if _, err := Ask(t.Context(), answering("mntr is not executed because it is not in the whitelist.\n"), "zk1:2181", "mntr"); !strings.HasPrefix(err.Error(), "mntr is not in") {
		t.Error(err)
	}
	if answer := must.Get(Ask(t.Context(), answering(strings.Repeat("x", 1<<20)), "zk1:2181", "dump"))(t); len(answer) != mostBytes {
		t.Errorf("an answer of %d bytes", len(answer))
	}
}

// TestAskEnds: the context ends the wait for a server that doesn't answer.
func TestAskEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		here, there := net.Pipe()
		defer there.Close()
		go func() { _, _ = io.ReadFull(there, make([]byte, 4)) }()
		_, err := Ask(ctx, func(context.Context, string, string) (net.Conn, error) { return here, nil }, "zk1:2181", "ruok")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer to ruok") {
			t.Error(err)
		}
	})
}

// TestFields: values are found by name, and other lines are left out.
func TestFields(t *testing.T) {
	t.Parallel()
	got := maps.Collect(Fields("Zookeeper version: 3.9.5, built on 2025: x\nfoo\n\nMode: leader\n", ": "))
	if len(got) != 2 || got["Mode"] != "leader" || got["Zookeeper version"] != "3.9.5, built on 2025: x" {
		t.Error(got)
	}
}

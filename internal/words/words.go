// Package words sends four-letter words to a server of ZooKeeper or zkgo.
//
// It imports only the standard library, starts no goroutines, and is safe for concurrent use.
package words

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"strings"
	"time"
)

// Dial connects to an address; nil is net.Dialer.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// To connects to addr.
func (d Dial) To(ctx context.Context, addr string) (net.Conn, error) {
	if d == nil {
		d = new(net.Dialer).DialContext
	}
	return d(ctx, "tcp", addr)
}

// The causes when a server answers, but without the facts that the word should return.
var (
	ErrNotListed  = errors.New("not in the server's 4lw.commands.whitelist")
	ErrNotServing = errors.New("the server does not serve clients: it has no quorum, or is starting")
	ErrTLS        = errors.New("the port accepts only TLS")
)

// mostBytes limits the bytes of an answer that we read. mntr is the longest answer without a list
// of connections or sessions, and has about 30 KiB. We need only the beginning of dump's answer.
const mostBytes = 256 << 10

// Ask sends a word to the server at addr and returns its answer. Dial and answer end with ctx.
func Ask(ctx context.Context, dial Dial, addr, word string) (string, error) {
	conn, err := dial.To(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return AskOn(ctx, conn, word)
}

// AskOn sends a word on an open connection, which serves only this, and returns the answer.
func AskOn(ctx context.Context, conn net.Conn, word string) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, mostBytes))
	text := string(answer)
	switch {
	case text == "" && ctx.Err() != nil:
		return "", fmt.Errorf("no answer to %s: %w", word, ctx.Err())
	case text == "" && err != nil:
		return "", err
	case text == "":
		return "", fmt.Errorf("no answer to %s, the server closed the connection: %w", word, io.EOF)
	case strings.HasPrefix(text, "\x15\x03"): // an alert
		return "", ErrTLS
	case strings.Contains(text, "is not executed because it is not in the whitelist"):
		return "", fmt.Errorf("%s is %w", word, ErrNotListed)
	case strings.HasPrefix(text, "This ZooKeeper instance is not currently serving requests"):
		return "", ErrNotServing
	}
	return text, nil
}

// Fields yields the names and values in an answer, which a separator divides: ": " for srvr, a tab
// for mntr, "=" for conf. Other lines are left out.
func Fields(answer, separator string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for line := range strings.Lines(answer) {
			name, value, is := strings.Cut(strings.TrimSpace(line), separator)
			if is && !yield(name, value) {
				return
			}
		}
	}
}

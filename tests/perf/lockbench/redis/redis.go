// Package redis implements the part of Redis's protocol (RESP) that Redis locks need. It
// imports the standard library only.
package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ErrNil is the nil reply; for SET NX it means that the key exists.
var ErrNil = errors.New("redis: nil")

// Conn is a connection. Only one goroutine may use it at a time.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects to a server.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

func newConn(c net.Conn) *Conn { return &Conn{c, bufio.NewReader(c)} }

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a command and returns the reply as text, with the elements of an array
// separated by line breaks. It returns ErrNil for a nil reply, and an error for Redis's
// error replies. After any other error the connection is unusable.
func (c *Conn) Do(ctx context.Context, args ...string) (string, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := c.conn.Write(request(args)); err != nil {
		return "", err
	}
	return c.answer()
}

// request encodes a command.
func request(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func (c *Conn) answer() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", errors.New("redis: an empty line for an answer")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New("redis: " + rest)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil || kind != '$' && kind != '*':
		return "", fmt.Errorf("redis: %q for an answer", line)
	case n < 0:
		return "", ErrNil
	case kind == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.in, b)
		return string(b[:n]), err
	}
	parts := make([]string, n)
	for i := range parts {
		if parts[i], err = c.answer(); err != nil && !errors.Is(err, ErrNil) {
			return "", err
		}
	}
	return strings.Join(parts, "\n"), nil
}

// release deletes a key if it still has the caller's value.
const release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// TryLock sets a key to a value that no other client uses, unless the key exists, and
// reports whether it set the key.
func (c *Conn) TryLock(ctx context.Context, key, value string, length time.Duration) (bool, error) {
	_, err := c.Do(ctx, "SET", key, value, "NX", "PX", strconv.FormatInt(length.Milliseconds(), 10))
	if errors.Is(err, ErrNil) {
		return false, nil
	}
	return err == nil, err
}

// Unlock deletes the key if it still has the value, and reports whether it did.
func (c *Conn) Unlock(ctx context.Context, key, value string) (bool, error) {
	n, err := c.Do(ctx, "EVAL", release, "1", key, value)
	return n == "1", err
}

// Package health queries the state of a running server over its client port. It's
// meant for probes, for scripts that do rolling restarts, and for zkServer.sh status.
//
// It uses ZooKeeper's four-letter words, so it also works with Apache ZooKeeper. srvr
// is the word that every server answers unless its whitelist was changed. The package
// never opens a session.
//
// It imports internal/zoocfg and internal/auth/keystore.
package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// Target is a server's client port.
type Target struct {
	Addr string      // host:port
	TLS  *tls.Config // nil for plaintext
}

// ErrNotServing is the error of a server that answers but doesn't serve clients,
// because it is starting or has no quorum.
var ErrNotServing = errors.New("the server is not currently serving requests")

// limit is the maximum number of bytes read of an answer. Words that list connections
// or watches can have long answers.
const limit = 64 << 20

// Of returns the client port in a configuration, at this machine's address, and prefers the
// plaintext port. For a TLS port, we present the server's own certificate and don't verify
// the peer's: a process that can listen on this machine's port could impersonate the server
// anyway.
func Of(c *zoocfg.Config) (Target, error) {
	if c.ClientPort >= 0 {
		return Target{Addr: local(c.ClientPortAddress, c.ClientPort)}, nil
	}
	if c.SecureClientPort < 0 {
		return Target{}, fmt.Errorf("%s does not set a client port", c.Path)
	}
	t := Target{Addr: local(c.SecureClientPortAddress, c.SecureClientPort), TLS: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	if k := c.TLS.KeyStore; k.Location != "" {
		cert, err := keystore.Store{Location: k.Location, Password: k.Password, PasswordPath: k.PasswordPath, Type: k.Type}.Certificate()
		if err != nil {
			return Target{}, err
		}
		t.TLS.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

// local returns the address to dial for a listener; a wildcard address becomes
// localhost.
func local(host string, port int) string {
	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// Word sends a four-letter word and returns the server's answer.
func Word(ctx context.Context, t Target, word string) (string, error) {
	if len(word) != 4 {
		return "", fmt.Errorf("%q is not a four-letter word", word)
	}
	conn, err := t.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err = io.WriteString(conn, word); err == nil {
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(conn, limit)); err == nil {
			return string(b), nil
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return "", fmt.Errorf("%s of %s: %w", word, t.Addr, err)
}

func (t Target) dial(ctx context.Context) (net.Conn, error) {
	if t.TLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", t.Addr)
	}
	return (&tls.Dialer{Config: t.TLS}).DialContext(ctx, "tcp", t.Addr)
}

// Live returns nil if the server answers.
func Live(ctx context.Context, t Target) error {
	answer, err := Word(ctx, t, "srvr")
	if err == nil && answer == "" {
		err = fmt.Errorf("%s closes the connection without a word", t.Addr)
	}
	return err
}

// Serving returns the mode of a server that serves clients ("standalone",
// "leader", "follower", "observer", "read-only"), or [ErrNotServing].
func Serving(ctx context.Context, t Target) (mode string, err error) {
	answer, err := Word(ctx, t, "srvr")
	if err != nil {
		return "", err
	}
	if _, rest, found := strings.Cut(answer, "Mode: "); found {
		mode, _, _ = strings.Cut(rest, "\n")
		return mode, nil
	}
	if strings.Contains(answer, "not currently serving requests") {
		return "", ErrNotServing
	}
	if answer == "" && t.TLS == nil {
		return "", fmt.Errorf("%s closed the connection without an answer to srvr: it may expect TLS, or refuse connections from here", t.Addr)
	}
	return "", fmt.Errorf("%s does not report its mode: %q", t.Addr, strings.TrimSpace(answer))
}

// ended reports whether ctx has ended. If ctx cuts a dial short, the dial may return
// slightly before ctx.Err reports the end, so we also compare the deadline.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// timedOut reports that an attempt was cut short instead of having a result.
func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// Await repeats Serving until the server serves or ctx ends, because a starting server
// refuses connections for a while. each is the time limit of one attempt; pause is the time
// between attempts. Await returns the error of the last attempt, except if that attempt
// failed because ctx ended: then it returns the error of the one before.
func Await(ctx context.Context, t Target, each, pause time.Duration) (mode string, err error) {
	err = repeat(ctx, each, pause, func(once context.Context) (err error) {
		mode, err = Serving(once, t)
		return err
	})
	return mode, err
}

// AwaitLive is Await for Live.
func AwaitLive(ctx context.Context, t Target, each, pause time.Duration) error {
	return repeat(ctx, each, pause, func(once context.Context) error { return Live(once, t) })
}

// repeat is the loop of Await.
func repeat(ctx context.Context, each, pause time.Duration, ask func(context.Context) error) (err error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, each)
		last := ask(once)
		cancel()
		if last == nil {
			return nil
		}
		if err == nil || !ended(ctx) || !timedOut(last) {
			err = last
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

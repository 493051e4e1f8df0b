package diagnose

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/client"
)

// probeTime limits each probe of a server that closes connections. We need a limit because
// a server that expects TLS doesn't answer the first probe.
const probeTime = time.Second

// Explain adds the server, the reason and a helpful flag or setting, in the words of t, to
// the error of a failed connect. If the server closed the connection, we probe it for the
// reason. If it didn't answer in time, we check whether it expects TLS. addr is host:port
// and may be "", config is nil without TLS. Explain returns other errors unchanged.
func Explain(ctx context.Context, addr string, config *tls.Config, t Terms, err error) error {
	reason := err
	switch {
	case addr == "":
	case isClosed(err):
		if found := t.probe(ctx, addr, config); found != nil {
			reason = found
		}
	case isTimeout(err) && config == nil && speaksTLS(ctx, addr): // it waits for the rest of a handshake
		reason = client.ErrTLSRequired
	}
	text, known := t.Phrase(reason)
	if !known && !isTimeout(err) && !isUnreachable(err) {
		return err
	}
	if !known {
		text = LastWords(err) + ": check the address and the port; the server may hang, its host may be down, or a firewall may drop the packets"
	}
	if addr != "" {
		text = addr + ": " + text
	}
	return explained{text, err}
}

// explained is an error with an explanation as its text.
type explained struct {
	text string
	err  error
}

// Error returns the explanation.
func (e explained) Error() string { return e.text }

// Unwrap returns the error.
func (e explained) Unwrap() error { return e.err }

// isTimeout reports whether the server didn't answer in time.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// isUnreachable reports whether there is no way to the server's network or host.
func isUnreachable(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// probe checks whether a server that closed a connection doesn't serve or expects
// TLS. It returns nil if neither is the case.
func (t Terms) probe(ctx context.Context, addr string, config *tls.Config) error {
	answer := srvr(ctx, addr, config)
	switch {
	case strings.Contains(answer, "not currently serving"):
		return ErrNotServing
	case strings.Contains(answer, "Mode:"):
		return probed{t.Serves}
	case answer != "" || config != nil:
		return nil
	}
	if speaksTLS(ctx, addr) {
		text, _ := t.Phrase(client.ErrTLSRequired)
		return probed{text}
	}
	return nil
}

// srvr returns the answer to srvr, or "" if there is none.
func srvr(ctx context.Context, addr string, config *tls.Config) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := dialFor(ctx, addr, config)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(io.LimitReader(conn, 4096)) // a partial answer is enough
	return string(answer)
}

// dialFor connects, with TLS if config isn't nil; ctx also limits the use of the
// connection. We don't verify the certificate, because we send no secrets.
func dialFor(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		conn.SetDeadline(end) //nolint:errcheck // a read would fail, too
	}
	if config == nil {
		return conn, nil
	}
	config = config.Clone()
	config.InsecureSkipVerify, config.VerifyConnection = true, nil
	return tls.Client(conn, config), nil
}

// speaksTLS reports whether a server answers a TLS handshake with a handshake or an
// alert.
func speaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := dialFor(ctx, addr, &tls.Config{MinVersion: tls.VersionTLS12})
	if err != nil {
		return false
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return false
	}
	err = secure.HandshakeContext(ctx)
	return err == nil || strings.Contains(err.Error(), "remote error: tls: ")
}

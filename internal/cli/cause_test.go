package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/server/zktest"
)

// listen accepts connections until the test ends and serves them concurrently, like a
// real server: a client that sends nothing delays no other. When serve returns or the test
// ends, the connection is closed.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); end(); all.Wait() })
	return l.Addr().String()
}

// refused returns an address without a listener.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answering starts a server that reads, answers and closes the connection.
func answering(t *testing.T, answer string) string {
	return listen(t, func(conn net.Conn) {
		if n, _ := conn.Read(make([]byte, 256)); n > 0 {
			io.WriteString(conn, answer) //nolint:errcheck // the test sees it
		}
	})
}

// notServing starts a server without a quorum: it only answers four-letter words.
func notServing(t *testing.T) string {
	return listen(t, func(conn net.Conn) {
		word := make([]byte, 4)
		if _, err := io.ReadFull(conn, word); err == nil && string(word) == "srvr" {
			io.WriteString(conn, "This ZooKeeper instance is not currently serving requests\n") //nolint:errcheck // the test sees it
		}
	})
}

// secure starts a server that speaks TLS.
func secure(t *testing.T, auth tls.ClientAuthType) (addr string, roots *x509.CertPool) {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	config := &tls.Config{Certificates: web.TLS.Certificates, ClientAuth: auth, MinVersion: tls.VersionTLS12}
	addr = listen(t, func(conn net.Conn) {
		s := tls.Server(conn, config)
		io.Copy(io.Discard, s) //nolint:errcheck // how it ends does not matter
		s.Close()
	})
	roots = x509.NewCertPool()
	roots.AddCert(web.Certificate())
	return addr, roots
}

// TestReportsWhyItCannotConnect checks that we report the cause for each server, both
// immediately and when the command gives up.
func TestReportsWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	tlsAddr, _ := secure(t, tls.NoClientCert)
	mutual, roots := secure(t, tls.RequireAnyClientCert)
	strange := &tls.Config{MinVersion: tls.VersionTLS12}
	trusting := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	http := answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	silent := listen(t, func(conn net.Conn) { io.Copy(io.Discard, conn) }) //nolint:errcheck // how it ends does not matter
	down := refused(t)
	var all sync.WaitGroup
	defer all.Wait()
	for name, c := range map[string]struct {
		server string
		tls    *tls.Config
		want   []string
	}{
		"refused":                 {down, nil, []string{down + ": connection refused"}},
		"no such host":            {"nosuch.invalid:2181", nil, []string{"nosuch.invalid:2181: ", "no such host"}},
		"each server":             {down + ",nosuch.invalid:2181," + http, nil, []string{down + ": connection refused", "nosuch.invalid:2181: ", http + ": ", "HTTP"}},
		"HTTP":                    {http, nil, []string{"not a ZooKeeper server", "HTTP"}},
		"silent":                  {silent, nil, []string{silent + ": no answer to ZooKeeper's handshake"}},
		"no quorum":               {notServing(t), nil, []string{"does not serve", "quorum"}},
		"closes":                  {answering(t, ""), nil, []string{"closed the connection without an answer"}},
		"plaintext to TLS":        {tlsAddr, nil, []string{"expects TLS", "--tls"}},
		"TLS alert":               {answering(t, "\x15\x03\x03\x00\x02\x02\x46"), nil, []string{"expects TLS", "--tls"}},
		"unknown CA":              {tlsAddr, strange, []string{"unknown authority", "--tls-ca"}},
		"no client certificate":   {mutual, trusting, []string{"client certificate", "--tls-cert"}},
		"TLS to plaintext":        {answering(t, ""), strange, []string{"TLS", "secureClientPort"}},
		"TLS to plaintext answer": {http, strange, []string{"does not speak TLS"}},
	} {
		all.Go(func() { // concurrently, because each command waits for its timeout
			var out, errs shared
			config := Config{Server: c.server, Out: &out, Err: &errs, Quiet: true, Patience: 4 * time.Second, TLS: c.tls}
			if c.tls != nil {
				config.Options = []client.Option{client.WithTLS(c.tls)}
			}
			s := New(config)
			defer s.Close() //nolint:errcheck // there is no session
			if err := s.Connect(c.server); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			code := s.Command(t.Context(), []string{"ls", "/"})
			notice, last, told := strings.Cut(errs.take(), "KeeperErrorCode = ConnectionLoss for /: gave up waiting after 4s: ")
			if !told || code != 1 || out.take() != "" {
				t.Errorf("%s: code %d, %q, %q", name, code, notice, last)
			}
			for _, want := range c.want {
				if !strings.Contains(notice, want) {
					t.Errorf("%s: %q is not among what is said at once:\n%s", name, want, notice)
				}
				if !strings.Contains(last, want) {
					t.Errorf("%s: %q is not in the error:\n%s", name, want, last)
				}
			}
			if strings.Count(last, "\n") != 1 {
				t.Errorf("%s: the error is not one line: %q", name, last)
			}
		})
	}
}

// TestUnneededServerIsNotReported checks that if a command succeeds, we print
// nothing about another server that is down.
func TestUnneededServerIsNotReported(t *testing.T) {
	t.Parallel()
	server := refused(t) + "," + zktest.Run(t).Addrs()[0]
	for range 8 { // servers are tried in random order
		var out, errs shared
		s := New(Config{Server: server, Out: &out, Err: &errs, Quiet: true})
		if err := s.Connect(server); err != nil {
			t.Fatal(err)
		}
		code := s.Command(t.Context(), []string{"ls", "/"})
		if text := errs.take(); code != 0 || text != "" {
			t.Errorf("%d, %q", code, text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPlaceReportsWhyItCannotConnect covers another ensemble as the target of cp.
func TestPlaceReportsWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	addr := zktest.Run(t).Addrs()[0]
	down := refused(t)
	var out, errs shared
	s := New(Config{Server: addr, Out: &out, Err: &errs, Quiet: true})
	defer s.Close() //nolint:errcheck // the test is done
	if err := s.Connect(addr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	above := func(text string) { // the notice should appear long before the command gives up
		_, _ = errs.Write([]byte(text))
		cancel()
	}
	s.above.Store(&above)
	code := s.Command(ctx, []string{"cp", "/", down + "/x"})
	if text := errs.take(); code == 0 || !strings.Contains(text, down+": connection refused") {
		t.Errorf("%d, %q", code, text)
	}
}

// TestTopReportsWhyItCannotConnect checks that top explains a server that it can't show, as
// the other commands do.
func TestTopReportsWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	tlsAddr, _ := secure(t, tls.NoClientCert)
	down := refused(t)
	var all sync.WaitGroup
	defer all.Wait()
	for server, want := range map[string]string{
		down:                  "connection refused: no server listens there",
		"nosuch.invalid:2181": "no such host: check the host name",
		tlsAddr:               "the port expects TLS: use --tls",
		notServing(t):         "it runs but does not serve clients: it has no quorum",
		answering(t, "\x15\x03\x03\x00\x02\x02\x46"): "the port expects TLS: use --tls",
		answering(t, ""): "it closed the connection without an answer: it may not serve",
		answering(t, "This ZooKeeper instance is not currently serving requests\n"): "it has no quorum",
	} {
		all.Go(func() {
			var out, errs shared
			s := New(Config{Server: down, Out: &out, Err: &errs, Quiet: true})
			defer s.Close() //nolint:errcheck // there is no session
			code := s.Command(t.Context(), []string{"top", "-once", server})
			if text := errs.take(); code != 1 || !strings.Contains(text, server+": ") || !strings.Contains(text, want) {
				t.Errorf("%s: %d, %q, want %q in it", server, code, text, want)
			}
		})
	}
}

// TestExplain checks errors that only commands without a client session have.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "zk1:2181: context deadline exceeded: check the address and the port"},
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "zk1:2181: no route to host: check the address"},
		{errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x15\x03\x01"`), "zk1:2181: the port expects TLS: use --tls"},
		{errors.New("http: server gave HTTP response to HTTPS client"), "zk1:2181: it does not speak TLS: omit"},
		{context.Canceled, "context canceled"},
	} {
		err := diagnose.Explain(t.Context(), "zk1:2181", nil, diagnose.ClientTerms(), c.err)
		if !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, c.err) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

package quorum

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// authority signs the certificates of a test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	last int64
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	c := a.issue(func(c *x509.Certificate) { c.Subject.CommonName, c.IsCA = name, true })
	a.key, a.cert = c.PrivateKey.(*ecdsa.PrivateKey), c.Leaf
	return a
}

// issue signs a certificate that is valid for an hour, after applying change.
func (a *authority) issue(change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.last++
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(a.last), Subject: pkix.Name{Organization: []string{"Test"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	change(tmpl)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) forHosts(hosts ...string) tls.Certificate {
	a.t.Helper()
	return a.issue(func(c *x509.Certificate) { c.DNSNames = hosts })
}

// secured returns the TLS settings of a server of the ensemble s1, s2, s3 that shows a
// certificate and trusts the authority's certificates.
func (a *authority) secured(cert tls.Certificate) *TLS {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	c := &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}
	return &TLS{Config: func() *tls.Config { return c }, VerifyHost: true, VerifyCaller: true, Hosts: hostsOfThree}
}

func hostsOfThree(server string) (its, others []string) {
	for _, id := range []string{"1", "2", "3"} {
		if id == strings.Split(server, ".")[0] {
			its = append(its, "s"+id)
		} else {
			others = append(others, "s"+id)
		}
	}
	return its, others
}

// secureHub starts a hub on the host of its server.
func secureHub(t *testing.T, n Network, id string, security *TLS, log *logBuffer) *Hub {
	t.Helper()
	h, err := Listen(n, "s"+strings.Split(id, ".")[0]+":1", Identity{ServerID: id, Cluster: ClusterID{1}}, Security{TLS: security},
		slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// parties are the names that the two servers of a refusal may have.
type parties struct {
	ca, other    *authority
	good1, good2 *TLS // of servers 1 and 2, with certificates of ca
}

// refusal is an attempt of server 1 to connect to server 2.
type refusal struct {
	name         string
	a, b         *TLS   // TLS of server 1, which calls, and of server 2
	as           string // the caller's id, if not server 1
	want         Code   // Accepted: they connect
	saysA, saysB []string
}

// TestTLSRefusals connects two differently configured servers: we should refuse
// unauthorized servers, and both logs should name the server, the certificate and the
// reason, in one line.
func TestTLSRefusals(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "the CA")
	p := &parties{ca, newAuthority(t, "another CA"), ca.secured(ca.forHosts("s1")), ca.secured(ca.forHosts("s2"))}
	for _, r := range slices.Concat(p.plaintext(), p.certificates(), p.names()) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t)
		})
	}
}

// with returns s after a change.
func with(s *TLS, change func(*TLS)) *TLS {
	c := *s
	change(&c)
	return &c
}

// withConfig returns s after a change of the configuration for package tls.
func withConfig(s *TLS, change func(*tls.Config)) *TLS {
	c := s.Config().Clone()
	change(c)
	return with(s, func(s *TLS) { s.Config = func() *tls.Config { return c } })
}

// expired returns settings with a certificate that has expired.
func (p *parties) expired(hosts ...string) *TLS {
	return p.ca.secured(p.ca.issue(func(c *x509.Certificate) { c.DNSNames, c.NotAfter = hosts, time.Now().Add(-time.Minute) }))
}

// revoked returns settings with an additional check besides the signature, which fails.
func revoked(s *TLS) *TLS {
	return withConfig(s, func(c *tls.Config) {
		c.VerifyConnection = func(state tls.ConnectionState) error {
			if len(state.VerifiedChains) == 0 {
				return errors.New("no chain to look at")
			}
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.VerifiedChains[0], Err: errors.New("it was revoked")}
		}
	})
}

// plaintext returns the cases of TLS, its versions and plaintext.
func (p *parties) plaintext() []refusal {
	version12 := withConfig(p.good1, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	version13 := withConfig(p.good2, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 })
	return []refusal{
		{name: "both", a: p.good1, b: p.good2},
		{name: "TLS 1.2", a: version12, b: p.good2},
		{name: "one version each", a: version12, b: version13, want: CertificateRefused,
			saysA: []string{"server 2 at s2:1", "protocol version"}, saysB: []string{"at s1:", "versions"}},
		{name: "TLS to plaintext", a: p.good1, b: nil, want: NoTLS,
			saysA: []string{"server 2 at s2:1", "does not use TLS"}, saysB: []string{"server at s1:", "requires TLS", "sslQuorum"}},
		{name: "plaintext to TLS", a: nil, b: p.good2, want: NeedTLS,
			saysA: []string{"server 2 at s2:1", "requires TLS", "sslQuorum"}, saysB: []string{"from server 1 at s1:", "does not use TLS"}},
		{name: "plaintext, allowed", a: nil, b: with(p.good2, func(s *TLS) { s.AcceptPlain = true })},
		{name: "plaintext, on purpose", a: with(p.good1, func(s *TLS) { s.DialPlain = true }), b: nil},
		{name: "TLS where plaintext is allowed", a: p.good1, b: with(p.good2, func(s *TLS) { s.AcceptPlain = true })},
	}
}

// certificates returns the cases of certificates that are not valid.
func (p *parties) certificates() []refusal {
	return []refusal{
		{name: "a caller of another CA", a: withConfig(p.other.secured(p.other.forHosts("s1")), func(c *tls.Config) { c.ClientCAs = p.good1.Config().ClientCAs }), b: p.good2, want: CertificateRefused,
			saysA: []string{"server 2 at s2:1", "does not accept our certificate", "another CA", "s1"},
			saysB: []string{"at s1:", "another CA", "unknown authority"}},
		{name: "a server of another CA", a: p.good1, b: p.other.secured(p.other.forHosts("s2")), want: BadCertificate,
			saysA: []string{"server 2 at s2:1", "another CA", "unknown authority"},
			saysB: []string{"at s1:", "does not accept our certificate", "another CA"}},
		{name: "an expired caller", a: p.expired("s1"), b: p.good2, want: CertificateRefused,
			saysA: []string{"server 2 at s2:1", "expired", "valid until"}, saysB: []string{"at s1:", "has expired", "valid until"}},
		{name: "an expired server", a: p.good1, b: p.expired("s2"), want: BadCertificate,
			saysA: []string{"server 2 at s2:1", "has expired"}, saysB: []string{"at s1:", "does not accept our certificate"}},
		{name: "a caller that was revoked", a: p.good1, b: revoked(p.good2), want: CertificateRefused,
			saysA: []string{"server 2 at s2:1", "does not accept our certificate"}, saysB: []string{"at s1:", "it was revoked", "s1"}},
		{name: "a server that was revoked", a: revoked(p.good1), b: p.good2, want: BadCertificate,
			saysA: []string{"server 2 at s2:1", "it was revoked"}, saysB: []string{"at s1:", "does not accept our certificate"}},
	}
}

// names returns the cases of names in certificates, and of names of ensembles.
func (p *parties) names() []refusal {
	return []refusal{
		{name: "a server with the name of another", a: p.good1, b: p.ca.secured(p.ca.forHosts("s3")), want: BadCertificate,
			saysA: []string{"server 2 at s2:1", "valid for s3, not s2"}, saysB: []string{"at s1:", "does not accept our certificate"}},
		{name: "a caller with the name of another", a: p.ca.secured(p.ca.forHosts("s3")), b: p.good2, want: CertificateRefused,
			saysA: []string{"server 2 at s2:1", "not that of server 1"}, saysB: []string{"from server 1 at s1:", "another server's", "s3"}},
		{name: "a caller without a name", a: p.ca.secured(p.ca.forHosts("elsewhere")), b: p.good2, want: CertificateRefused,
			saysA: []string{"server 2 at s2:1", "not that of server 1"}, saysB: []string{"from server 1 at s1:", "names neither", "elsewhere"}},
		{name: "names do not matter", a: with(p.ca.secured(p.ca.forHosts("x")), func(s *TLS) { s.VerifyHost = false }),
			b: with(p.ca.secured(p.ca.forHosts("y")), func(s *TLS) { s.VerifyCaller = false })},
		{name: "common names", a: p.ca.secured(p.ca.issue(func(c *x509.Certificate) { c.Subject.CommonName = "s1" })),
			b: p.ca.secured(p.ca.issue(func(c *x509.Certificate) { c.Subject.CommonName = "s2" }))},
		{name: "a new server calls from its host", as: "9", a: p.ca.secured(p.ca.forHosts("s9")), b: p.good2},
		{name: "a member of another ensemble", as: "1", a: p.good1, b: p.good2, want: WrongCluster,
			saysA: []string{"another ensemble"}, saysB: []string{"another ensemble"}},
	}
}

// run connects the two servers.
func (r *refusal) run(t *testing.T) {
	t.Helper()
	var logA, logB logBuffer
	m := NewMemory()
	if r.as == "" {
		r.as = "1"
	}
	a := secureHub(t, m.Host("s"+r.as), r.as, r.a, &logA)
	b := secureHub(t, m.Host("s2"), "2", r.b, &logB)
	if r.want == WrongCluster {
		b.SetIdentity(Identity{ServerID: "2", Cluster: ClusterID{2}})
	}
	b.Handle(Raft, echo)
	b.Handle(Forward, echo)
	for _, kind := range []Kind{Raft, Forward, Raft} {
		conn, _, err := a.Dial(t.Context(), kind, "s2:1", "2")
		if r.want == Accepted {
			if err != nil {
				t.Fatal(err)
			}
			conn.Write([]byte("ping"))
			if got := readN(t, conn, 4); got != "ping" {
				t.Fatalf("read %q", got)
			}
			conn.Close()
			continue
		}
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Code != r.want {
			t.Fatalf("got %v, want code %d", err, r.want)
		}
	}
	for end := time.Now().Add(30 * time.Second); r.want != Accepted && logB.String() == "" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	a.Close() // nothing is logged after this
	b.Close()
	for log, says := range map[*logBuffer][]string{&logA: r.saysA, &logB: r.saysB} {
		log.holds(t, r.want, says)
	}
}

// holds checks that a refusal logged one line, and that it contains the expected words.
func (l *logBuffer) holds(t *testing.T, want Code, says []string) {
	t.Helper()
	text := l.String()
	if lines := strings.Count(text, "\n"); want == Accepted && lines > 0 || want != Accepted && lines != 1 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("no word of %q in %s", s, text)
		}
	}
}

// TestRefusalNamesKnownServers: a refusal should name the other server as far as we know it.
func TestRefusalNamesKnownServers(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*RefusedError{
		"raft stream to server 2 at s2:1: ":     {Kind: Raft, Addr: "s2:1", To: "2", Code: NeedTLS},
		"probe stream to the server at s2:1: ":  {Kind: Probe, Addr: "s2:1", Code: NeedTLS},
		"raft stream from server 2 at s2:1: it": {Kind: Raft, Addr: "s2:1", Incoming: true, Theirs: Identity{ServerID: "2"}, Code: NeedTLS},
		"a server at s2:1: it":                  {Kind: Raft, Addr: "s2:1", Incoming: true, Code: NeedTLS},
	} {
		if got := e.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTLSIsEncrypted inspects the bytes on the wire.
func TestTLSIsEncrypted(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		ca := newAuthority(t, "CA")
		var seen logBuffer
		m := NewMemory()
		var s1, s2 *TLS
		if secure {
			s1, s2 = ca.secured(ca.forHosts("s1")), ca.secured(ca.forHosts("s2"))
		}
		a := secureHub(t, tapped{m.Host("s1"), &seen}, "1", s1, new(logBuffer))
		b := secureHub(t, m.Host("s2"), "2", s2, new(logBuffer))
		b.Handle(Raft, echo)
		conn, _, err := a.Dial(t.Context(), Raft, "s2:1", "2")
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("secret words"))
		readN(t, conn, len("secret words"))
		if text := seen.String(); strings.Contains(text, "secret") == secure || strings.Contains(text, magic) == secure {
			t.Errorf("TLS %t: sent %q", secure, text)
		}
	}
}

// tapped is a network that records the bytes written to dialled connections.
type tapped struct {
	Network
	log *logBuffer
}

func (n tapped) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	return tappedConn{c, n.log}, err
}

type tappedConn struct {
	net.Conn
	log *logBuffer
}

func (c tappedConn) Write(b []byte) (int, error) {
	c.log.Write(b)
	return c.Conn.Write(b)
}

// TestTLSNewCertificates changes a server's certificate and trusted CAs while it runs.
func TestTLSNewCertificates(t *testing.T) {
	t.Parallel()
	old, fresh := newAuthority(t, "old"), newAuthority(t, "fresh")
	both := x509.NewCertPool()
	both.AddCert(old.cert)
	both.AddCert(fresh.cert)
	a := old.secured(old.forHosts("s1"))
	var now atomic.Pointer[tls.Config]
	now.Store(a.Config())
	a.Config = now.Load
	m := NewMemory()
	ha := secureHub(t, m.Host("s1"), "1", a, new(logBuffer))
	hb := secureHub(t, m.Host("s2"), "2", fresh.secured(fresh.forHosts("s2")), new(logBuffer))
	ha.Handle(Raft, echo)
	hb.Handle(Raft, echo)
	meet := func() (ab, ba error) {
		c, _, ab := ha.Dial(t.Context(), Raft, "s2:1", "2")
		if ab == nil {
			c.Close()
		}
		c, _, ba = hb.Dial(t.Context(), Raft, "s1:1", "1")
		if ba == nil {
			c.Close()
		}
		return ab, ba
	}
	if ab, ba := meet(); ab == nil || ba == nil {
		t.Fatalf("they trust each other before: %v, %v", ab, ba)
	}
	c := fresh.secured(fresh.forHosts("s1")).Config().Clone()
	c.ClientCAs = both
	now.Store(c)
	if ab, ba := meet(); ab != nil || ba != nil {
		t.Fatalf("they do not trust each other after: %v, %v", ab, ba)
	}
}

// TestTLSCloseDoesNotWait closes a connection while the peer doesn't read.
func TestTLSCloseDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t, "CA")
		m := NewMemory()
		n := &sticky{Network: m.Host("s1"), closed: make(chan struct{})}
		a := secureHub(t, n, "1", ca.secured(ca.forHosts("s1")), new(logBuffer))
		b := secureHub(t, m.Host("s2"), "2", ca.secured(ca.forHosts("s2")), new(logBuffer))
		b.Handle(Raft, echo)
		conn, _, err := a.Dial(t.Context(), Raft, "s2:1", "2")
		if err != nil {
			t.Fatal(err)
		}
		n.stuck.Store(true)
		before := time.Now()
		conn.Close()
		if d := time.Since(before); d > 0 {
			t.Errorf("it took %v", d)
		}
	})
}

// sticky is a network that can make its connections block writes.
type sticky struct {
	Network
	stuck  atomic.Bool
	closed chan struct{}
}

func (n *sticky) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	return stickyConn{c, n}, err
}

type stickyConn struct {
	net.Conn
	n *sticky
}

func (c stickyConn) Write(b []byte) (int, error) {
	if !c.n.stuck.Load() {
		return c.Conn.Write(b)
	}
	select {
	case <-c.n.closed:
	case <-time.After(5 * time.Second): // a deadline wouldn't be shorter
	}
	return 0, os.ErrDeadlineExceeded
}

func (c stickyConn) Close() error {
	close(c.n.closed)
	return c.Conn.Close()
}

// TestTLSRefusalsAreRare: we should log a permanent refusal only occasionally, although its
// reason contains the time.
func TestTLSRefusalsAreRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t, "CA")
		expired := ca.issue(func(c *x509.Certificate) { c.DNSNames, c.NotAfter = []string{"s2"}, time.Now().Add(-time.Minute) })
		m := NewMemory()
		var logA, logB logBuffer
		a := secureHub(t, m.Host("s1"), "1", ca.secured(ca.forHosts("s1")), &logA)
		secureHub(t, m.Host("s2"), "2", ca.secured(expired), &logB)
		for range 2 * 60 {
			if _, _, err := a.Dial(t.Context(), Raft, "s2:1", "2"); err == nil {
				t.Fatal("an expired certificate was accepted")
			}
			time.Sleep(time.Second)
		}
		for _, log := range []*logBuffer{&logA, &logB} {
			if lines := strings.Count(log.String(), "\n"); lines < 2 || lines > 5 {
				t.Errorf("%d lines in two minutes:\n%s", lines, log)
			}
		}
	})
}

// TestTLSDoesNotWaitForSilence gives up on a caller that sends nothing.
func TestTLSDoesNotWaitForSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t, "CA")
		m := NewMemory()
		s := ca.secured(ca.forHosts("s2"))
		s.Detect = time.Second
		secureHub(t, m.Host("s2"), "2", s, new(logBuffer))
		for said, want := range map[string]time.Duration{"": time.Second, "\x16": HandshakeTimeout, "z": HandshakeTimeout} {
			conn, err := m.Host("s1").Dial(t.Context(), "s2:1")
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			if said != "" {
				conn.Write([]byte(said))
			}
			for err == nil {
				_, err = conn.Read(make([]byte, 100))
			}
			conn.Close()
			if d := time.Since(before); d < want || d > want+drainTimeout {
				t.Errorf("after %q it waits for %v, want %v", said, d, want)
			}
		}
	})
}

// TestTLSWithOpenSSL uses another implementation than Go's to test which callers the port
// accepts, and that it refuses versions before TLS 1.2.
func TestTLSWithOpenSSL(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl to ask")
	}
	ca, other := newAuthority(t, "CA"), newAuthority(t, "another CA")
	local := func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }
	h, err := Listen(new(TCP), "127.0.0.1:0", Identity{ServerID: "2", Cluster: ClusterID{1}}, Security{TLS: ca.secured(ca.issue(local))}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	dir := t.TempDir()
	file := func(name string, c tls.Certificate) string {
		der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})...)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	roots := file("ca.pem", tls.Certificate{Certificate: [][]byte{ca.cert.Raw}, PrivateKey: ca.key})
	good, bad := file("good.pem", ca.issue(local)), file("bad.pem", other.issue(local))
	for _, tt := range []struct {
		name string
		args []string
		ok   bool
	}{
		{"with a certificate", []string{"-cert", good, "-key", good}, true},
		{"by TLS 1.2", []string{"-tls1_2", "-cert", good, "-key", good}, true},
		{"without a certificate", nil, false},
		{"with another CA's", []string{"-cert", bad, "-key", bad}, false},
		{"by TLS 1.1", []string{"-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0", "-cert", good, "-key", good}, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "openssl", append([]string{"s_client", "-connect", h.Addr().String(), "-CAfile", roots,
			"-verify_return_error", "-verify_ip", "127.0.0.1", "-quiet"}, tt.args...)...)
		// A request to a server that isn't ready for it gets an answer.
		q := hello{version: version, kind: Raft, to: "2", from: Identity{ServerID: "2", Cluster: ClusterID{1}}}
		in, err := cmd.StdinPipe() // open until openssl ends
		if err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = in.Write(q.append(nil))
		_ = cmd.Wait() // its exit status depends on whether it is refused
		cancel()
		if got := strings.HasPrefix(out.String(), magic); got != tt.ok {
			t.Errorf("%s: an answer: %t, want %t; openssl says %s", tt.name, got, tt.ok, said.String())
		}
	}
}

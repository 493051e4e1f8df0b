package server

import (
	"context"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// sslQuorum returns the lines of a zoo.cfg for TLS between server id and its peers.
func (a *authority) sslQuorum(id uint64, more string) string {
	a.t.Helper()
	name := "peer" + strconv.FormatUint(id, 10)
	return "dataDir=/tmp/x\nclientPort=0\nssl.quorum.keyStore.location=" + a.issue(name+".pem", pkix.Name{CommonName: name}, host(int(id))) +
		"\nssl.quorum.trustStore.location=" + a.dir + "/ca.pem\n" + more
}

func quorumTLS(t *testing.T, text string) *QuorumTLS {
	t.Helper()
	z, err := zoocfg.ParseText("zoo.cfg", text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fromZooCfg(z, allFormats())
	if err != nil {
		t.Fatal(err)
	}
	return c.Quorum.TLS
}

// listening is a network that records the certificate subjects that pass in the clear:
// before TLS 1.3 the whole handshake does.
type listening struct {
	quorum.Network
	mu   *sync.Mutex
	seen *strings.Builder
}

func (n listening) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return listeningConn{c, n}, nil
}

type listeningConn struct {
	net.Conn
	n listening
}

func (c listeningConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.mu.Lock()
	c.n.seen.Write(b[:n])
	c.n.mu.Unlock()
	return n, err
}

// TestSSLQuorum runs an ensemble configured by the keys of zoo.cfg and gives it new
// certificates, in the end from a new authority, without a restart.
func TestSSLQuorum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		var mu sync.Mutex
		var seen strings.Builder
		heard := func(s string) bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(seen.String(), s)
		}
		e := startEnsemble(t, 3, func(c *Config) {
			c.Quorum.TLS = quorumTLS(t, a.sslQuorum(c.Quorum.ID, "sslQuorum=true\nsslQuorumReloadCertFiles=true\nssl.quorum.protocol=TLSv1.2\n"))
			c.Env.Network = listening{c.Env.Network, &mu, &seen}
		})
		w := connect(t, e.servers[0])
		w.create("/before", nil, proto.ModePersistent)
		if !heard("peer1") || heard("zkgopeer") || heard("/before") {
			t.Error("the servers do not use TLS, or the traffic is readable")
		}
		fresh := newAuthority(t)
		old := a.cert
		for step, change := range []func(){
			func() { a.write("ca.pem", append(pemOf(old), pemOf(fresh.cert)...)) },
			func() {
				a.key, a.cert = fresh.key, fresh.cert
				for id := 1; id <= 3; id++ {
					name := "peer" + strconv.Itoa(id)
					a.issue(name+".pem", pkix.Name{CommonName: "renewed" + strconv.Itoa(id)}, host(id))
				}
			},
			func() { a.write("ca.pem", pemOf(fresh.cert)) },
			func() { a.write("ca.pem", []byte("damaged")) },
		} {
			change()
			for x := 1; x <= 3; x++ { // makes all servers reconnect
				e.net.Reset(host(x), host(x%3+1))
			}
			time.Sleep(10 * time.Second)
			w := connect(t, e.servers[step%3])
			w.create("/step"+strconv.Itoa(step), nil, proto.ModePersistent)
			if got := heard("renewed1"); got != (step > 0) {
				t.Errorf("step %d: the new certificate is shown: %t", step, got)
			}
		}
	})
}

func TestSSLQuorumFromZooCfg(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	stores := a.sslQuorum(1, "")
	key, _, _ := strings.Cut(stores, "ssl.quorum.trustStore")
	for _, tc := range []struct {
		text, want string // want: part of the error
		check      func(*QuorumTLS) bool
	}{
		{stores, "", func(q *QuorumTLS) bool { return q == nil }},
		{stores + "portUnification=true\n", "", func(q *QuorumTLS) bool { return q.DialPlain && q.AcceptPlain }},
		{stores + "portUnification=true\nsslQuorum=true\n", "", func(q *QuorumTLS) bool { return !q.DialPlain && q.AcceptPlain }},
		{stores + "sslQuorum=true\n", "", func(q *QuorumTLS) bool {
			return !q.DialPlain && !q.AcceptPlain && q.VerifyHost && q.VerifyClientHost && q.ReverseDNS && !q.Reload
		}},
		{stores + "sslQuorum=true\nssl.quorum.clientHostnameVerification=false\nssl.quorum.allowReverseDnsLookup=false\n", "",
			func(q *QuorumTLS) bool { return q.VerifyHost && !q.VerifyClientHost && !q.ReverseDNS }},
		{stores + "sslQuorum=true\nssl.quorum.hostnameVerification=false\n", "",
			func(q *QuorumTLS) bool { return !q.VerifyHost && !q.VerifyClientHost }},
		{stores + "sslQuorum=true\nsslQuorumReloadCertFiles=true\nssl.quorum.handshakeDetectionTimeoutMillis=77\n", "",
			func(q *QuorumTLS) bool { return q.Reload && q.DetectionTimeout == 77*time.Millisecond }},
		{stores + "sslQuorum=true\nssl.quorum.enabledProtocols=TLSv1.2\nssl.quorum.ciphersuites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n", "",
			func(q *QuorumTLS) bool { return len(q.Protocols) == 1 && len(q.CipherSuites) == 1 }},
		{stores + "sslQuorum=true\nssl.quorum.crl=true\n", "", func(q *QuorumTLS) bool { return q.CRL && !q.OCSP }},
		{stores + "sslQuorum=true\nssl.quorum.ocsp=true\n", "", func(q *QuorumTLS) bool { return q.OCSP && !q.CRL }},
		{key + "sslQuorum=true\n", "ssl.quorum.trustStore.location", nil},
		{"dataDir=/tmp/x\nclientPort=0\nportUnification=true\n", "ssl.quorum.keyStore.location", nil},
	} {
		z, err := zoocfg.ParseText("zoo.cfg", tc.text)
		if err != nil {
			t.Fatalf("%s: %v", tc.text, err)
		}
		c, err := fromZooCfg(z, allFormats())
		switch {
		case tc.want != "":
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.text, err)
		case !tc.check(c.Quorum.TLS):
			t.Errorf("%s: %+v", tc.text, c.Quorum.TLS)
		case c.Quorum.TLS != nil:
			if _, err := c.Quorum.TLS.load(allFormats(), slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("%s: %v", tc.text, err)
			}
		}
	}
	q := quorumTLS(t, stores+"sslQuorum=true\n")
	q.Trust.Location = a.dir + "/nowhere.pem"
	if _, err := q.load(allFormats(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "nowhere.pem") {
		t.Errorf("a trust store that is missing: %v", err)
	}
}

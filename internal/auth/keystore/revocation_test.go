package keystore

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/zkgo/zkgo/internal/auth/certs"
)

// registrar is a CA that publishes which of its certificates are revoked.
type registrar struct {
	t   *testing.T
	key *ecdsa.PrivateKey
	ca  *x509.Certificate
	web *httptest.Server

	revoked atomic.Bool  // serial number 0xbeef is revoked
	down    atomic.Bool  // requests fail
	stale   atomic.Bool  // responses are expired
	asked   atomic.Int64 // number of requests
}

func newRegistrar(t *testing.T) *registrar {
	t.Helper()
	r := &registrar{t: t}
	r.key, r.ca = sign(t, "CA", nil, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/crl", r.crl)
	mux.HandleFunc("/ocsp", r.ocsp)
	r.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		if r.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, q)
	}))
	t.Cleanup(r.web.Close)
	return r
}

// until returns the time until which a response is valid.
func (r *registrar) until() time.Time {
	if r.stale.Load() {
		return time.Now().Add(-time.Minute)
	}
	return time.Now().Add(time.Hour)
}

func (r *registrar) crl(w http.ResponseWriter, _ *http.Request) {
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: r.until()}
	if r.revoked.Load() {
		l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: big.NewInt(0xbeef), RevocationTime: time.Now().Add(-time.Minute)}}
	}
	b, err := x509.CreateRevocationList(rand.Reader, l, r.ca, r.key)
	if err != nil {
		r.t.Error(err)
	}
	_, _ = w.Write(b)
}

func (r *registrar) ocsp(w http.ResponseWriter, q *http.Request) {
	b, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	question, err := ocsp.ParseRequest(b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := ocsp.Response{SerialNumber: question.SerialNumber, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: r.until()}
	if r.revoked.Load() {
		a.Status, a.RevokedAt = ocsp.Revoked, time.Now().Add(-time.Minute)
	}
	answer, err := ocsp.CreateResponse(r.ca, r.ca, a, r.key)
	if err != nil {
		r.t.Error(err)
	}
	_, _ = w.Write(answer)
}

// client creates a certificate that contains the registrar's addresses.
func (r *registrar) client(change func(*x509.Certificate)) tls.Certificate {
	return issued(r.t, identity{ca: r.ca}, r.key, change)
}

// config returns a server configuration with the given options.
func (r *registrar) config(id identity, o Options) *tls.Config {
	o.Key = keyStores(r.t, id)[0]
	o.Trust = Store{Location: write(r.t, "t.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.ca.Raw}))}
	return must(ServerConfig(o, nil))
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	id := issue(t, "server")
	roots := x509.NewCertPool()
	roots.AddCert(id.ca)
	crl := func(r *registrar) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.CRLDistributionPoints = []string{r.web.URL + "/crl"} }
	}
	both := func(r *registrar) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.CRLDistributionPoints, c.OCSPServer = []string{r.web.URL + "/crl"}, []string{r.web.URL + "/ocsp"}
		}
	}
	nowhere := func(*registrar) func(*x509.Certificate) { return func(*x509.Certificate) {} }
	elsewhere := func(r *registrar) func(*x509.Certificate) {
		other := newRegistrar(t)
		return func(c *x509.Certificate) { c.CRLDistributionPoints = []string{other.web.URL + "/crl"} }
	}
	for _, tt := range []struct {
		name  string
		o     Options
		names func(*registrar) func(*x509.Certificate)
		state func(*registrar)
		says  string // expected error; "" means accepted
	}{
		{"not asked for", Options{}, crl, func(r *registrar) { r.revoked.Store(true) }, ""},
		{"good", Options{CRL: true}, crl, nil, ""},
		{"revoked", Options{CRL: true}, crl, func(r *registrar) { r.revoked.Store(true) }, "was revoked"},
		{"down", Options{CRL: true}, crl, func(r *registrar) { r.down.Store(true) }, "503"},
		{"stale", Options{CRL: true}, crl, func(r *registrar) { r.stale.Store(true) }, "expired on"},
		{"no address", Options{CRL: true}, nowhere, nil, "names no address"},
		{"another's list", Options{CRL: true}, elsewhere, nil, "is not signed by"},
		{"OCSP good", Options{OCSP: true}, both, nil, ""},
		{"OCSP revoked", Options{OCSP: true}, both, func(r *registrar) { r.revoked.Store(true) }, "was revoked"},
		{"OCSP stale", Options{OCSP: true}, both, func(r *registrar) { r.stale.Store(true) }, "expired on"},
		{"OCSP by list", Options{OCSP: true}, crl, func(r *registrar) { r.revoked.Store(true) }, "was revoked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistrar(t)
			if tt.state != nil {
				tt.state(r)
			}
			client := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{r.client(tt.names(r))}}
			err, _ := shake(r.config(id, tt.o), client)
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err = certs.Explain(err); err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "CN=carol") {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
}

// TestRevocationListIsKept checks that we fetch a list only now and then, and use it until
// its expiry if the registrar is down.
func TestRevocationListIsKept(t *testing.T) {
	t.Parallel()
	reg := newRegistrar(t)
	cert := must(x509.ParseCertificate(reg.client(func(c *x509.Certificate) { c.CRLDistributionPoints = []string{reg.web.URL + "/crl"} }).Certificate[0]))
	r := newRevocation(false)
	now := time.Now()
	r.now = func() time.Time { return now }
	check := func(asked int64, good bool) {
		t.Helper()
		if err := r.check(cert, reg.ca); (err == nil) != good || reg.asked.Load() != asked {
			t.Errorf("%v, asked %d times", err, reg.asked.Load())
		}
	}
	check(1, true)
	check(1, true)
	now = now.Add(listAge + time.Second)
	check(2, true)
	reg.down.Store(true)
	now = now.Add(listAge + time.Second)
	check(3, true)
	now = now.Add(2 * time.Hour)
	check(4, false)
	reg.down.Store(false)
	reg.revoked.Store(true)
	now = time.Now()
	check(5, false)
}

package keystore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/youmark/pkcs8"

	"github.com/zkgo/zkgo/internal/auth/certs"
)

// issued returns a certificate that change has modified.
func issued(t *testing.T, ca identity, caKey *ecdsa.PrivateKey, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(0xbeef), Subject: pkix.Name{CommonName: "carol"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	change(tmpl)
	der := must(x509.CreateCertificate(rand.Reader, tmpl, ca.ca, &key.PublicKey, caKey))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestExplain checks that the error identifies the rejected certificate and the
// reason.
func TestExplain(t *testing.T) {
	t.Parallel()
	server := issue(t, "server")
	caKey, ca := sign(t, "client CA", nil, nil)
	authority := identity{ca: ca}
	otherKey, other := sign(t, "client CA", nil, nil)
	trust := Store{Location: write(t, "t.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))}
	config := must(ServerConfig(Options{Key: keyStores(t, server)[0], Trust: trust}, nil))
	roots := x509.NewCertPool()
	roots.AddCert(server.ca)
	for _, tt := range []struct {
		name string
		cert tls.Certificate
		says string
	}{
		{"expired", issued(t, authority, caKey, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), " expired on 20"},
		{"not yet valid", issued(t, authority, caKey, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), "is not valid before 20"},
		{"unknown authority", issued(t, identity{ca: other}, otherKey, func(*x509.Certificate) {}), "not signed by an authority in the trust store"},
		{"for servers only", issued(t, authority, caKey, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), "extended key usage"},
	} {
		client := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{tt.cert}}
		err, _ := shake(config, client)
		if err = certs.Explain(err); err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "the certificate of CN=carol (issued by CN=client CA, serial number beef)") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	refused := fmt.Errorf("remote error: tls: %s", "bad certificate")
	if err := certs.Explain(refused); !strings.Contains(err.Error(), "the peer rejected") {
		t.Error(err)
	}
	if certs.Explain(nil) != nil || !errors.Is(certs.Explain(net.ErrClosed), net.ErrClosed) {
		t.Error("other errors were changed")
	}
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{server.cert}}
	err := certs.HostCheck{Verify: true}.Check(state, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	if err == nil || !strings.Contains(err.Error(), "CN=server") || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("wrong host: %v", err)
	}
}

// TestOwnCertificateExpired checks that the server warns but still starts, because clients
// may not verify the certificate.
func TestOwnCertificateExpired(t *testing.T) {
	t.Parallel()
	caKey, ca := sign(t, "CA", nil, nil)
	old := issued(t, identity{ca: ca}, caKey, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	key := must(x509.MarshalPKCS8PrivateKey(old.PrivateKey))
	path := write(t, "old.pem", append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Certificate[0]})...))
	var warned []error
	if _, err := ServerConfig(Options{Key: Store{Location: path}, ClientAuth: "none"}, func(err error) { warned = append(warned, err) }); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0].Error(), path) || !strings.Contains(warned[0].Error(), " expired on") {
		t.Errorf("warnings %v", warned)
	}
}

func TestEncryptedPEM(t *testing.T) {
	t.Parallel()
	id := issue(t, "server")
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.cert.Raw})
	der := must(pkcs8.MarshalPrivateKey(id.key, []byte(password), nil))
	path := write(t, "k.pem", append(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der}), chain...))
	if _, err := (Store{Location: path, Password: password}).Certificate(); err != nil {
		t.Error(err)
	}
	old := write(t, "old.pem", append(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: der}), chain...))
	for _, tt := range []struct {
		store Store
		says  string
	}{
		{Store{Location: path}, "no password"},
		{Store{Location: path, Password: "wrong"}, "wrong password"},
		{Store{Location: old, Password: password}, "openssl pkcs8"},
	} {
		if _, err := tt.store.Certificate(); err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.store.Location) {
			t.Errorf("%v does not say %q", err, tt.says)
		}
	}
}

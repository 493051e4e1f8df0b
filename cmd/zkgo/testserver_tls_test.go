package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// certificate writes a key with a self-signed certificate for this host.
func certificate(t *testing.T) (file string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), certPEM...)
	file = filepath.Join(t.TempDir(), "server.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return file, roots
}

// Settings in zoo.cfg reach a test server: here TLS on a separate port.
func TestTestserverWithTLS(t *testing.T) {
	t.Parallel()
	file, roots := certificate(t)
	ts := runsTestserver(t, "--set", "secureClientPort=0", "--set", "ssl.keyStore.location="+file,
		"--set", "ssl.trustStore.location="+file, "--set", "ssl.clientAuth=none")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	nc, err := d.DialContext(ctx, "tcp", ts.ready.SecureConnectString)
	if err != nil {
		t.Fatalf("secureConnectString %q: %v", ts.ready.SecureConnectString, err)
	}
	if answer, err := process.WordOn(nc, "ruok", patience); err != nil || answer != "imok" {
		t.Errorf("%q, %v", answer, err)
	}
	ts.stdin.Close()
	ts.await(t, "stdin was closed")
}

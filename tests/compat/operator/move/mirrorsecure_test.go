package move

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// TestMirrorWithSASL follows an ensemble with servers that authenticate each other, and checks that
// a wrong password and a missing one say so.
func TestMirrorWithSASL(t *testing.T) {
	t.Parallel()
	need(t)
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	must.Do(t, os.WriteFile(jaas, []byte(`
QuorumServer { org.apache.zookeeper.server.auth.DigestLoginModule required user_zk="secret"; };
QuorumLearner { org.apache.zookeeper.server.auth.DigestLoginModule required username="zk" password="secret"; };
`), 0o600))
	o := options("quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true", "quorum.auth.serverRequireSasl=true")
	o.JVM = append(o.JVM, "-Djava.security.auth.login.config="+jaas, "-Dzookeeper.fips-mode=false") // which 3.9 needs for DIGEST-MD5
	servers := oracle.Ensemble(t, 3, o)
	addrs := quorumAddrs(t, servers[0])
	joinWith(t, learner.Config{Addrs: addrs, ID: 200, User: "zk", Password: "secret"})
	for password, want := range map[string]string{"": "may require SASL", "wrong": "SASL"} {
		cfg := learner.Config{Addrs: addrs, ID: 201, Password: password}
		if password != "" {
			cfg.User = "zk"
		}
		if _, err := learner.Dial(ctx(t), cfg, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with password %q: %v", password, err)
		}
	}
}

// TestMirrorWithTLS follows an ensemble with sslQuorum, and checks that plaintext says so.
func TestMirrorWithTLS(t *testing.T) {
	t.Parallel()
	need(t)
	file, config := selfSigned(t)
	o := options("sslQuorum=true", "ssl.quorum.keyStore.location="+file, "ssl.quorum.trustStore.location="+file)
	servers := oracle.Ensemble(t, 3, o)
	addrs := quorumAddrs(t, servers[0])
	joinWith(t, learner.Config{Addrs: addrs, ID: 200, TLS: config})
	_, err := learner.Dial(ctx(t), learner.Config{Addrs: addrs, ID: 201, SyncTimeout: 5 * time.Second}, 0)
	if !errors.Is(err, learner.ErrNoLeader) || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("in plaintext: %v", err)
	}
}

// selfSigned returns a PEM file with a key and its certificate, and the TLS configuration of a
// peer that has the same.
func selfSigned(t *testing.T) (file string, config *tls.Config) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "zookeeper"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key))(t)
	secret := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	file = filepath.Join(t.TempDir(), "store.pem")
	must.Do(t, os.WriteFile(file, text, 0o600))
	pair := must.Get(tls.X509KeyPair(text, text))(t)
	roots := x509.NewCertPool()
	roots.AddCert(must.Get(x509.ParseCertificate(der))(t))
	return file, &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}
}

package keystore

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jks "github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/zkgo/zkgo/internal/auth/certs"
)

// identity is a key with its certificate and the CA that signed it.
type identity struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	ca   *x509.Certificate
}

// issue creates a CA and an identity signed by it.
func issue(t *testing.T, name string) identity {
	t.Helper()
	caKey, ca := sign(t, name+" CA", nil, nil)
	key, cert := sign(t, name, ca, caKey)
	return identity{key, cert, ca}
}

func sign(t *testing.T, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: parent == nil,
	}
	if parent == nil {
		parent, parentKey = tmpl, key
		tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

func (id identity) pkcs8(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(id.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (id identity) pem(t *testing.T) []byte {
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: id.pkcs8(t)}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.cert.Raw})...)
}

const password = "secret"

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// keyStores writes one identity in all formats.
func keyStores(t *testing.T, id identity) []Store {
	t.Helper()
	p12 := must(pkcs12.Modern.Encode(id.key, id.cert, []*x509.Certificate{id.ca}, password))
	ks := jks.New()
	entry := jks.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: id.pkcs8(t), CertificateChain: []jks.Certificate{{Type: "X509", Content: id.cert.Raw}}}
	if err := ks.SetPrivateKeyEntry("me", entry, []byte(password)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ks.Store(&b, []byte(password)); err != nil {
		t.Fatal(err)
	}
	return []Store{
		{Location: write(t, "k.pem", id.pem(t))},
		{Location: write(t, "k.p12", p12), Password: password},
		{Location: write(t, "k.jks", b.Bytes()), PasswordPath: write(t, "pw", []byte(password+"\n"))},
		{Location: write(t, "k.jks", p12), Password: password}, // the format of Java 9 and later
		{Location: write(t, "k.bin", p12), Password: password, Type: "pkcs12"},
	}
}

// trustStores writes one CA in all formats.
func trustStores(t *testing.T, id identity) []Store {
	t.Helper()
	p12 := must(pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{id.ca}, password))
	ks := jks.New()
	if err := ks.SetTrustedCertificateEntry("ca", jks.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: jks.Certificate{Type: "X509", Content: id.ca.Raw}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ks.Store(&b, []byte(password)); err != nil {
		t.Fatal(err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.ca.Raw})
	return []Store{
		{Location: write(t, "t.pem", caPEM)},
		{Location: write(t, "t.pfx", p12), Password: password},
		{Location: write(t, "t.jks", b.Bytes()), Password: password},
		{Location: write(t, "t.jks", p12), Password: password},
	}
}

// shake runs one handshake and returns the error of each side.
func shake(server, client *tls.Config) (serverErr, clientErr error) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		err := s.Handshake()
		if err != nil {
			a.Close()
		}
		done <- err
	}()
	c := tls.Client(b, client)
	clientErr = c.Handshake()
	if clientErr == nil { // with TLS 1.3 the client learns of a rejection after its handshake
		go c.Read(make([]byte, 1)) //nolint:errcheck // only to read the alert
	} else {
		b.Close()
	}
	return <-done, clientErr
}

func TestFormats(t *testing.T) {
	t.Parallel()
	server, client := issue(t, "server"), issue(t, "client")
	roots := x509.NewCertPool()
	roots.AddCert(server.ca)
	with := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{client.cert.Raw}, PrivateKey: client.key}}}
	without := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	stranger := with.Clone()
	other := issue(t, "other")
	stranger.Certificates = []tls.Certificate{{Certificate: [][]byte{other.cert.Raw}, PrivateKey: other.key}}
	for _, key := range keyStores(t, server) {
		for _, trust := range trustStores(t, client) {
			c, err := ServerConfig(Options{Key: key, Trust: trust}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s, cl := shake(c, with); s != nil || cl != nil {
				t.Errorf("%s, %s: %v, %v", key.Location, trust.Location, s, cl)
			}
			if s, _ := shake(c, without); s == nil {
				t.Errorf("%s, %s: a client without certificate was accepted", key.Location, trust.Location)
			}
			if s, _ := shake(c, stranger); s == nil {
				t.Errorf("%s, %s: a client with another CA was accepted", key.Location, trust.Location)
			}
		}
	}
}

func TestClientAuth(t *testing.T) {
	t.Parallel()
	id := issue(t, "server")
	roots := x509.NewCertPool()
	roots.AddCert(id.ca)
	client := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	o := Options{Key: keyStores(t, id)[0], Trust: trustStores(t, id)[0]}
	for auth, ok := range map[string]bool{"none": true, "want": true, "need": false} {
		o.ClientAuth = auth
		if s, _ := shake(must(ServerConfig(o, nil)), client); (s == nil) != ok {
			t.Errorf("%s: a client without certificate: %v", auth, s)
		}
	}
	old := client.Clone()
	old.MaxVersion = tls.VersionTLS12
	o.ClientAuth, o.Protocols = "none", []string{"TLSv1.3"}
	if s, _ := shake(must(ServerConfig(o, nil)), old); s == nil {
		t.Error("TLS 1.2 was accepted although only 1.3 is enabled")
	}
	o.Protocols, o.CipherSuites = []string{"TLSv1.2"}, []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}
	if c := must(ServerConfig(o, nil)); c.MaxVersion != tls.VersionTLS12 || len(c.CipherSuites) != 1 {
		t.Errorf("versions up to %x, %d suites", c.MaxVersion, len(c.CipherSuites))
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	id, other := issue(t, "a"), issue(t, "b")
	good := keyStores(t, id)
	trust := trustStores(t, id)[0]
	mixed := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: other.pkcs8(t)}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.cert.Raw})...)
	tests := []struct {
		name string
		o    Options
		says string
	}{
		{"missing file", Options{Key: Store{Location: "/no/such.pem"}, Trust: trust}, "/no/such.pem"},
		{"unknown extension", Options{Key: Store{Location: "/k.xyz"}, Trust: trust}, "set the type"},
		{"unknown type", Options{Key: Store{Location: "/k.jks", Type: "BCFKS"}, Trust: trust}, "BCFKS"},
		{"wrong password", Options{Key: Store{Location: good[1].Location, Password: "x"}, Trust: trust}, good[1].Location},
		{"wrong password of a JKS", Options{Key: Store{Location: good[2].Location, Password: "x"}, Trust: trust}, good[2].Location},
		{"missing password file", Options{Key: Store{Location: good[2].Location, PasswordPath: "/no/pw"}, Trust: trust}, "/no/pw"},
		{"no key", Options{Key: trust, Trust: trust}, "no private key"},
		{"key of another", Options{Key: Store{Location: write(t, "m.pem", mixed)}, Trust: trust}, "does not belong"},
		{"encrypted key", Options{Key: Store{Location: write(t, "e.pem", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY"}))}, Trust: trust}, "encrypted"},
		{"no trust store", Options{Key: good[0]}, "ssl.trustStore.location"},
		{"empty trust store", Options{Key: good[0], Trust: Store{Location: write(t, "t.pem", nil)}}, "no certificate"},
		{"bad clientAuth", Options{Key: good[0], ClientAuth: "maybe"}, "maybe"},
		{"bad protocol", Options{Key: good[0], ClientAuth: "none", Protocols: []string{"SSLv3"}}, "SSLv3"},
		{"bad suite", Options{Key: good[0], ClientAuth: "none", CipherSuites: []string{"NULL"}}, "NULL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := ServerConfig(tt.o, nil); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v does not say %q", err, tt.says)
			}
		})
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	first, second := issue(t, "first"), issue(t, "second")
	path := write(t, "k.pem", first.pem(t))
	var warned []error
	c := must(ServerConfig(Options{Key: Store{Location: path}, ClientAuth: "none", Reload: true}, func(err error) { warned = append(warned, err) }))
	served := func() string {
		return must(c.GetConfigForClient(nil)).Certificates[0].Leaf.Subject.CommonName
	}
	change := func(data []byte, age time.Duration) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if got := served(); got != "first" {
		t.Fatal(got)
	}
	change([]byte("half a file"), time.Minute)
	if got := served(); got != "first" || len(warned) != 1 || !strings.Contains(warned[0].Error(), path) {
		t.Fatalf("with a damaged file: %s, warnings %v", got, warned)
	}
	change(second.pem(t), 2*time.Minute)
	if got := served(); got != "second" || len(warned) != 1 {
		t.Fatalf("with a new file: %s, warnings %v", got, warned)
	}
}

func TestVerifyHost(t *testing.T) {
	t.Parallel()
	id := issue(t, "client")
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{id.cert}}
	o := certs.HostCheck{Verify: true}
	if err := o.Check(state, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Error(err)
	}
	if err := o.Check(state, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); err == nil {
		t.Error("a certificate for another address was accepted")
	}
	if err := (certs.HostCheck{}).Check(state, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); err != nil {
		t.Error(err)
	}
}

// Java stores certificates in the order in which they were imported, so a CA's certificate
// may come before the key's.
func TestPKCS12WithTheCAFirst(t *testing.T) {
	t.Parallel()
	id := issue(t, "server")
	p12 := must(pkcs12.Modern.Encode(id.key, id.ca, []*x509.Certificate{id.cert}, password))
	cert, err := Store{Location: write(t, "ca-first.p12", p12), Password: password}.Certificate()
	if err != nil || !cert.Leaf.Equal(id.cert) || len(cert.Certificate) != 2 {
		t.Errorf("%v, %+v", err, cert.Leaf)
	}
}

// Files on a command line may have any name, so we should detect the format.
func TestSniff(t *testing.T) {
	t.Parallel()
	id := issue(t, "server")
	for _, s := range append(keyStores(t, id), trustStores(t, id)...) {
		data, err := os.ReadFile(s.Location)
		if err != nil {
			t.Fatal(err)
		}
		s.Location, s.Type = write(t, "ca.crt", data), ""
		if _, err := s.Pool(); err == nil {
			t.Error("the extension .crt needs no type")
		}
		if _, err := s.Sniff().Pool(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (Store{Location: "/no/such.crt"}).Sniff().Pool(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

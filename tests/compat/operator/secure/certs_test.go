package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// storePassword is the password of all stores.
const storePassword = "s3cret"

// certs is a directory with certificates of one authority, in stores made with the tools
// that operators have.
type certs struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	crl  string // the revocation list's URL in certificates issued from now on
}

func newCerts(t *testing.T) *certs {
	t.Helper()
	c := &certs{t: t, dir: t.TempDir()}
	c.key, c.cert = c.sign(pkix.Name{CommonName: "Test CA", Organization: []string{"Example"}}, time.Hour)
	c.write("ca.pem", "CERTIFICATE", c.cert.Raw)
	return c
}

func (c *certs) path(name string) string { return filepath.Join(c.dir, name) }

func (c *certs) write(name, kind string, der []byte) {
	c.t.Helper()
	must.Do(c.t, os.WriteFile(c.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// sign creates a certificate that expires after valid; the first one is the authority's.
func (c *certs) sign(name pkix.Name, valid time.Duration) (*ecdsa.PrivateKey, *x509.Certificate) {
	c.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(c.t)
	serial := must.Get(rand.Int(rand.Reader, big.NewInt(1<<62)))(c.t)
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: name, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		BasicConstraintsValid: true, IsCA: c.cert == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	if c.crl != "" {
		tmpl.CRLDistributionPoints = []string{c.crl}
	}
	parent, signer := c.cert, c.key
	if parent == nil {
		parent, signer = tmpl, key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer))(c.t)
	cert := must.Get(x509.ParseCertificate(der))(c.t)
	return key, cert
}

// issue writes NAME.key and NAME.pem, and with openssl NAME.p12.
func (c *certs) issue(name string, subject pkix.Name, valid time.Duration) *x509.Certificate {
	c.t.Helper()
	key, cert := c.sign(subject, valid)
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(c.t)
	c.write(name+".key", "PRIVATE KEY", der)
	c.write(name+".pem", "CERTIFICATE", cert.Raw)
	c.run("openssl", "pkcs12", "-export", "-name", name, "-inkey", c.path(name+".key"), "-in", c.path(name+".pem"),
		"-out", c.path(name+".p12"), "-passout", "pass:"+storePassword)
	return cert
}

// trustStore writes ca.NAME with keytool, in one of Java's formats.
func (c *certs) trustStore(format string) string {
	c.t.Helper()
	path := c.path("ca." + map[string]string{"JKS": "jks", "PKCS12": "p12"}[format])
	c.run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", c.path("ca.pem"), "-keystore", path, "-storetype", format, "-storepass", storePassword)
	return path
}

// encrypted writes a PEM file with the encrypted key of name, and its certificate.
func (c *certs) encrypted(name string) string {
	c.t.Helper()
	key := c.path(name + ".encrypted.key")
	c.run("openssl", "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", c.path(name+".key"), "-out", key, "-passout", "pass:"+storePassword)
	var both []byte
	for _, f := range []string{key, c.path(name + ".pem")} {
		b := must.Get(os.ReadFile(f))(c.t)
		both = append(both, b...)
	}
	path := c.path(name + ".encrypted.pem")
	must.Do(c.t, os.WriteFile(path, both, 0o600))
	return path
}

func (c *certs) run(name string, args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

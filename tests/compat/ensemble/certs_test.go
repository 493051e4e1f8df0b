package ensemble

import (
	"bytes"
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

// authority signs certificates, as an operator's own authority does.
type authority struct {
	t    testing.TB
	name string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t, name: name, key: newKey(t)}
	root := certificate(name)
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = a.sign(root, root, &a.key.PublicKey)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return key
}

func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}

func (a *authority) sign(tmpl, parent *x509.Certificate, key any) *x509.Certificate {
	a.t.Helper()
	der := must.Get(x509.CreateCertificate(rand.Reader, tmpl, parent, key, a.key))(a.t)
	cert := must.Get(x509.ParseCertificate(der))(a.t)
	return cert
}

// pem returns the authority's own certificate.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// issue returns a key and a certificate for an address, as in one PEM file.
func (a *authority) issue(ip string, change ...func(*x509.Certificate)) []byte {
	a.t.Helper()
	tmpl := certificate("by " + a.name)
	tmpl.IPAddresses = []net.IP{net.ParseIP(ip)}
	for _, f := range change {
		f(tmpl)
	}
	key := newKey(a.t)
	cert := a.sign(tmpl, a.cert, &key.PublicKey)
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(a.t)
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
}

// put replaces a file atomically, as an operator should do to renew certificates.
func put(t testing.TB, path string, content ...[]byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path+".new", bytes.Join(content, nil), 0o600))
	must.Do(t, os.Rename(path+".new", path))
}

// keytool runs Java's keytool in a directory.
func keytool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "keytool", append([]string{"-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("keytool %q: %v\n%s", args, err, out)
	}
}

// store returns the lines of a zoo.cfg that name a key store or a trust store.
func store(kind, path string, more ...string) []string {
	lines := []string{"ssl.quorum." + kind + "Store.location=" + path}
	for _, line := range more {
		lines = append(lines, "ssl.quorum."+kind+"Store."+line)
	}
	return lines
}

// javaStores makes the stores of three servers as ZooKeeper's administrator's guide
// describes. Each server has a self-signed certificate with its address as the common name,
// and a trust store with the certificates of all. Server 1 has JKS, server 2 PKCS12, and server 3 a
// JKS without the extension, with the password in a file.
func javaStores(t *testing.T, c *cluster) map[int][]string {
	t.Helper()
	if _, err := exec.LookPath("keytool"); err != nil {
		t.Fatal("keytool of a JDK is not installed: ", err)
	}
	dir := c.dir
	lines := make(map[int][]string)
	password := []string{"-storepass", "secret-of-the-store"}
	for id, typ := range map[int]string{1: "JKS", 2: "PKCS12", 3: "JKS"} {
		name := map[int]string{1: "k1.jks", 2: "k2.p12", 3: "k3"}[id]
		host := c.nodes[id].host
		keytool(t, dir, append([]string{"-genkeypair", "-alias", host, "-keyalg", map[int]string{1: "RSA", 2: "EC", 3: "EC"}[id], "-validity", "2",
			"-dname", "cn=" + host, "-keystore", name, "-storetype", typ, "-keypass", "secret-of-the-store"}, password...)...)
		keytool(t, dir, append([]string{"-exportcert", "-alias", host, "-keystore", name, "-file", host + ".cer"}, password...)...)
		keytool(t, dir, append([]string{"-importcert", "-noprompt", "-alias", host, "-file", host + ".cer", "-keystore", "trust.jks", "-storetype", "JKS"}, password...)...)
		lines[id] = store("key", filepath.Join(dir, name), "password=secret-of-the-store")
	}
	keytool(t, dir, "-importkeystore", "-noprompt", "-srckeystore", "trust.jks", "-srcstorepass", "secret-of-the-store",
		"-destkeystore", "trust.p12", "-deststoretype", "PKCS12", "-deststorepass", "secret-of-the-store")
	put(t, filepath.Join(dir, "password"), []byte("secret-of-the-store\n"))
	lines[3] = store("key", filepath.Join(dir, "k3"), "type=JKS", "passwordPath="+filepath.Join(dir, "password"))
	for id, trust := range map[int]string{1: "trust.jks", 2: "trust.p12", 3: "trust.jks"} {
		lines[id] = append(lines[id], store("trust", filepath.Join(dir, trust), "password=secret-of-the-store")...)
	}
	return lines
}

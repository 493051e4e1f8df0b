package kubernetes

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// authority issues certificates, as an issuer of cert-manager does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return &authority{must.Get(x509.ParseCertificate(der))(t), key}
}

// pem returns the authority's certificate.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue returns the files of a Secret with a new certificate.
func (a *authority) issue(t *testing.T, names []string) map[string][]byte {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: voterSet}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	certificate := block("CERTIFICATE", must.Get(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))(t))
	private := block("PRIVATE KEY", must.Get(x509.MarshalPKCS8PrivateKey(key))(t))
	return map[string][]byte{"tls.crt": certificate, "tls.key": private, "tls-combined.pem": slices.Concat(private, certificate), "ca.crt": a.pem()}
}

// kept is a client's data.
const kept = "for members only"

// TestScaleWithTLS scales an ensemble with TLS. A server with the certificate of another authority
// receives neither a vote nor data, although it knows the password of super.
func TestScaleWithTLS(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "certmanager")
	c.scale(voterSet, 3)
	c.start(false, pods(3)...)
	c.ready(pods(3)...)
	z := c.connect(pods(3)...)
	ctx := t.Context()
	must.Get(z.Create(ctx, "/kept", []byte(kept), client.Ephemeral))(t)

	c.scale(voterSet, 5)
	c.start(false, "zk-zookeeper-3")
	c.ready("zk-zookeeper-3")
	c.members(z, voters(4)...)

	const stranger = "zk-zookeeper-4"
	c.pods[stranger] = &pod{root: c.image(stranger)}
	unlisted := func(who string) {
		t.Helper()
		if config := must.Get(z.Config(ctx))(t); strings.Contains(config.Text, "server.5=") {
			t.Errorf("%s has joined:\n%s", who, config.Text)
		}
	}
	other := newAuthority(t)

	// It can't even log in to ask for a vote.
	c.certify(c.pods[stranger].root, other, "client", "quorum")
	c.refuses(stranger)
	unlisted("a server with certificates of another authority")

	// It can ask, but not call the leader.
	c.certify(c.pods[stranger].root, c.issuer, "client")
	c.refuses(stranger)
	unlisted("a server with the quorum certificate of another authority")
	if c.said(givenUp) == 0 {
		t.Error("no leader has given up its reconfig")
	}

	// It can call the leader, which can't call it, because its name doesn't resolve.
	c.certify(c.pods[stranger].root, c.issuer, "quorum")
	c.dns.remove(stranger + "." + domain)
	c.start(true, stranger)
	before := c.said(givenUp)
	wait.Eventually(t, "the leader gives up a server that it can't call", func() bool { return c.said(givenUp) > before })
	unlisted("a server that the leader can't call")
	c.pods[stranger].Kill()
	c.members(z, voters(4)...)
	must.Get(z.Create(ctx, "/written", nil))(t)

	c.start(false, stranger)
	c.ready(stranger)
	c.members(z, voters(5)...)
	wait.Eventually(t, "with the right certificates, it gets a vote and the data", func() bool { return c.voted() && c.holds(stranger) })

	// They leave with the newest certificates: a pod outlives its first certificates.
	for _, name := range pods(5) {
		c.certify(c.pods[name].root, other, "client")
	}
	c.scale(voterSet, 3)
	c.stop("zk-zookeeper-3", stranger)
	c.ended(voterSet)
	c.members(z, voters(3)...)
	if data, _, err := z.Get(ctx, "/kept"); err != nil || string(data) != kept {
		t.Errorf("the znode of the session is %q, %v", data, err)
	}
}

// refuses starts a pod, and checks that the others let it have neither a vote nor data.
func (c *cluster) refuses(stranger string) {
	c.t.Helper()
	c.start(false, stranger)
	wait.Eventually(c.t, "servers refuse each other's certificates", func() bool {
		return strings.Contains(c.pods[stranger].Output(), "unknown authority")
	})
	// The leader waits 2 s for a server that joins.
	in := wait.For(5*time.Second, "the stranger gets in", func() (bool, error) {
		return c.voted() || c.probe(stranger, c.pod.Ready) == http.StatusOK, nil
	})
	if in == nil {
		c.t.Error("a server with the certificate of another authority has a vote, or serves")
	}
	c.pods[stranger].Kill()
	if c.holds(stranger) {
		c.t.Error("it has data")
	}
}

// givenUp is the leader's log message after a reconfig that adds an unreachable server.
const givenUp = "it adds servers that do not call this server"

// said returns how often the first servers have logged a text.
func (c *cluster) said(text string) (n int) {
	for _, name := range pods(4) {
		n += strings.Count(c.pods[name].Output(), text)
	}
	return n
}

// voted reports whether the leader has given server 5 a vote.
func (c *cluster) voted() bool {
	return c.said("give server 5.") > 0
}

// holds reports whether a pod's volume has the client's data.
func (c *cluster) holds(name string) (found bool) {
	c.t.Helper()
	must.Do(c.t, filepath.WalkDir(filepath.Join(c.pods[name].root, "bitnami/zookeeper"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || bytes.Contains(text, []byte(kept))
		return err
	}))
	return found
}

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return &authority{must.Get(x509.ParseCertificate(der))(t), key}
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// issue writes server.pem (key and certificate) and ca.pem into a directory.
func (a *authority) issue(t *testing.T, dir string, names ...string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "zk"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	certificate := block("CERTIFICATE", must.Get(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))(t))
	private := block("PRIVATE KEY", must.Get(x509.MarshalPKCS8PrivateKey(key))(t))
	must.Do(t, os.WriteFile(filepath.Join(dir, "server.pem"), slices.Concat(private, certificate), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "ca.pem"), block("CERTIFICATE", a.certificate.Raw), 0o600))
}

const secured = `
replicaCount: 3
tls:
  client: {enabled: true, auth: need, existingSecret: client-certs, existingSecretKeystoreKey: server.pem, existingSecretTruststoreKey: ca.pem}
  quorum: {enabled: true, existingSecret: quorum-certs, existingSecretKeystoreKey: server.p12, existingSecretTruststoreKey: ca.pem, passwordsSecretName: quorum-passwords}
auth:
  super: {existingSecret: root}
  client: {enabled: true, required: true, existingSecret: client-auth, clientUser: app, serverUsers: "app,admin"}
  quorum: {enabled: true, existingSecret: quorum-auth, learnerUser: zk, serverUsers: zk}
metrics: {enabled: true}
networkPolicy: {allowExternal: false}
backup: {enabled: true, schedule: "0 0 1 1 *", persistence: {size: 1Gi}}
`

// TestSecured runs an ensemble with TLS and passwords from Secrets on all ports, and backs it up.
func TestSecured(t *testing.T) {
	n := newNamespace(t, "secured")
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(t, dir, "*.zk-zookeeper-headless."+n.name+".svc.cluster.local", "zk-zookeeper", "localhost")
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Get(tool("openssl", "pkcs12", "-export", "-in", at("server.pem"), "-out", at("server.p12"), "-passout", "pass:secret"))(t)
	secret := func(name string, args ...string) {
		n.kubectl(append([]string{"create", "secret", "generic", name}, args...)...)
	}
	secret("client-certs", "--from-file="+at("server.pem"), "--from-file="+at("ca.pem"))
	secret("quorum-certs", "--from-file="+at("server.p12"), "--from-file="+at("ca.pem"))
	secret("quorum-passwords", "--from-literal=keystore-password=secret", "--from-literal=truststore-password=")
	secret("root", "--from-literal=super-password=toor")
	secret("client-auth", "--from-literal=client-password=pw", "--from-literal=server-password=pw,pw2")
	secret("quorum-auth", "--from-literal=quorum-learner-password=qpw", "--from-literal=quorum-server-password=qpw")
	n.helm(secured, small...)
	n.await("zk-zookeeper", 3)

	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	certificate := must.Get(tls.LoadX509KeyPair(at("server.pem"), at("server.pem")))(t)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "zk-zookeeper", Certificates: []tls.Certificate{certificate}}
	address := n.address("zk-zookeeper", "tcp-client-tls")
	c := n.connectTo(address, client.WithTLS(config), client.WithSASL(client.DigestMD5("app", "pw")))
	n.members(c, voters(3)...)
	ctx := context.Background()
	if ids := must.Get(c.WhoAmI(ctx))(t); !slices.ContainsFunc(ids, func(id client.ID) bool { return id.Scheme == "sasl" && id.ID == "app" }) {
		t.Errorf("the client is %v", ids)
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if anonymous, err := client.Connect(short, address, client.WithTLS(config)); err == nil {
		if _, err := anonymous.Create(short, "/anonymous", nil); err == nil {
			t.Error("a client without a password may write")
		}
		_ = anonymous.Close()
	}
	without := config.Clone()
	without.Certificates = nil
	if stranger, err := client.Connect(short, address, client.WithTLS(without)); err == nil {
		t.Error("a client without a certificate may connect")
		_ = stranger.Close()
	}

	w := n.write(c)
	n.kubectl("scale", "statefulset", "zk-zookeeper", "--replicas=5")
	n.await("zk-zookeeper", 5)
	n.members(c, voters(5)...)
	n.kubectl("scale", "statefulset", "zk-zookeeper", "--replicas=3")
	n.await("zk-zookeeper", 3)
	n.members(c, voters(3)...)
	n.kubectl("rollout", "restart", "statefulset", "zk-zookeeper")
	n.await("zk-zookeeper", 3)
	w.check("scaled and restarted with TLS")
	for i := range 3 {
		if got := n.field("pod/zk-zookeeper-"+string(rune('0'+i)), ".status.containerStatuses[0].restartCount"); got != "0" {
			t.Errorf("server %d was restarted %s times", i, got)
		}
	}

	for _, job := range []string{"first", "second"} {
		n.kubectl("create", "job", "--from=cronjob/zk-zookeeper-backup", job)
		if _, err := tool("kubectl", "-n", n.name, "wait", "--for=condition=Complete", "job/"+job, "--timeout=180s"); err != nil {
			t.Errorf("%v\n%s", err, n.kubectl("logs", "-l", "job-name="+job, "--all-containers", "--prefix"))
		}
	}
	if out := n.kubectl("exec", "zk-zookeeper-0", "--", "zkgo", "cli", "-server", "localhost:2181", "-auth", "digest:super:toor", "config"); !strings.Contains(out, "server.3=") {
		t.Errorf("zkgo cli config prints %s", out)
	}
}

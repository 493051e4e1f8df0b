package takeover

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), key: must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
	tmpl := certificate("CA")
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = tmpl
	a.cert = a.sign(tmpl, &a.key.PublicKey)
	a.file = a.write("ca.pem", &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	return a
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
}

func (a *authority) sign(tmpl *x509.Certificate, key *ecdsa.PublicKey) *x509.Certificate {
	a.t.Helper()
	return must.Get(x509.ParseCertificate(must.Get(x509.CreateCertificate(rand.Reader, tmpl, a.cert, key, a.key))(a.t)))(a.t)
}

func (a *authority) write(name string, blocks ...*pem.Block) string {
	a.t.Helper()
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	path := filepath.Join(a.dir, name)
	must.Do(a.t, os.WriteFile(path, text, 0o600))
	return path
}

// issue returns a PEM file with a key and its certificate for an address.
func (a *authority) issue(ip string) string {
	a.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	tmpl := certificate("server")
	tmpl.IPAddresses = []net.IP{net.ParseIP(ip)}
	cert := a.sign(tmpl, &key.PublicKey)
	return a.write(ip+".pem", &pem.Block{Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(key))(a.t)}, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// refused is a mirror that can't connect with these flags, and what its status says.
type refused struct {
	name  string
	flags []string
	cause string // at which server, and why
	help  string
}

// TestQuorumSecurity: zkgo follows servers that secure the connections between each other, and
// replaces them. Without the right flags it names the problem and the flag that helps, and keeps
// trying.
func TestQuorumSecurity(t *testing.T) {
	need(t)
	ca, other := newAuthority(t), newAuthority(t)
	store, stranger := ca.issue("127.0.0.1"), other.issue("127.0.0.1")
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	must.Do(t, os.WriteFile(jaas, []byte(`
QuorumServer { org.apache.zookeeper.server.auth.DigestLoginModule required user_zk="secret"; };
QuorumLearner { org.apache.zookeeper.server.auth.DigestLoginModule required username="zk" password="secret"; };
`), 0o600))
	for name, c := range map[string]struct {
		old     oracle.Options
		flags   []string
		refused []refused
	}{
		"TLS": {
			oracle.Options{Config: []string{"sslQuorum=true", "ssl.quorum.keyStore.location=" + store, "ssl.quorum.trustStore.location=" + ca.file}},
			[]string{"--tls-cert", store, "--tls-ca", ca.file},
			[]refused{
				{"plaintext", nil, "may require SASL (quorum.auth.serverRequireSasl), TLS (sslQuorum)", "--sasl may be missing, or --tls-cert and --tls-ca"},
				{"an authority that we don't know", []string{"--tls-cert", store, "--tls-ca", other.file}, "certificate signed by unknown authority", "--tls-ca must name"},
				{"an authority that they don't know", []string{"--tls-cert", stranger, "--tls-ca", ca.file}, "does not accept our certificate", "--tls-cert must name"},
				{"no certificate", []string{"--tls-ca", ca.file}, "does not accept our certificate", "--tls-cert must name"},
				{"another name", []string{"--tls-cert", store, "--tls-ca", ca.file, "--tls-server-name", "zk1"}, "zk1", "see --tls-server-name"},
				{"a login", []string{"--tls-cert", store, "--tls-ca", ca.file, "--sasl", "zk:secret"}, "does not use SASL", "leave out --sasl"},
			},
		},
		"SASL": {
			oracle.Options{
				Config: []string{"quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true", "quorum.auth.serverRequireSasl=true"},
				JVM:    []string{"-Djava.security.auth.login.config=" + jaas, "-Dzookeeper.fips-mode=false"}, // which 3.9 needs for DIGEST-MD5
			},
			[]string{"--sasl", "zk:secret"},
			[]refused{
				{"no login", nil, "may require SASL", "--sasl may be missing"},
				{"a wrong password", []string{"--sasl", "zk:wrong"}, "authentication refused for user \"zk\"", "--sasl must name"},
				{"an unknown user", []string{"--sasl", "zoo:secret"}, "authentication refused for user \"zoo\"", "--sasl must name"},
				{"TLS", []string{"--sasl", "zk:secret", "--tls-ca", ca.file}, "may not use TLS", "leave out the --tls flags"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRigIn(t, nil, 1, c.old, c.flags...)
			s := r.new[0]
			good := s.args
			for _, w := range c.refused {
				s.args = append(slices.Clone(good[:len(good)-len(c.flags)]), w.flags...)
				s.launch()
				must.Do(t, wait.Success(patience, w.name, func() error {
					st, err := s.status()
					if err != nil || st.InSync || !strings.Contains(st.Problem, w.cause) || !strings.Contains(st.Problem, w.help) || !strings.Contains(st.Problem, "127.0.0.1:") {
						return fmt.Errorf("%v %+v", err, st)
					}
					return nil
				}))
				s.kill()
			}
			s.args = good
			r.sameState()
		})
	}
}

// TestSecureClientPort: zkgo replaces servers that require TLS from clients. It asks the servers
// that accept its certificate, and names the others.
func TestSecureClientPort(t *testing.T) {
	t.Parallel()
	need(t)
	ca, other := newAuthority(t), newAuthority(t)
	store := ca.issue("127.0.0.1")
	r := &rig{t: t, fence: t.TempDir()}
	r.old = must.Get(oracle.Configure(t.TempDir(), 3, "tickTime=1000", "initLimit=10", "syncLimit=5",
		"sslQuorum=true", "ssl.quorum.keyStore.location="+store, "ssl.quorum.trustStore.location="+ca.file,
		"ssl.keyStore.location="+store, "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"))(t)
	for i, s := range r.old {
		// The gate has the port that the server tells, at another address.
		secure := fmt.Sprintf("127.0.0.2:%d", s.Port)
		trust := []string{ca.file, other.file, other.file}[i]
		path := filepath.Join(s.Dir, "zoo.cfg")
		text := string(must.Get(os.ReadFile(path))(t))
		text = strings.NewReplacer("clientPort=", "secureClientPort=", "clientPortAddress=127.0.0.1", "secureClientPortAddress=127.0.0.2").Replace(text) + "ssl.trustStore.location=" + trust + "\n"
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		must.Do(t, s.With("-Dzookeeper.digest.enabled=true").Launch())
		t.Cleanup(s.Stop)
		r.gates = append(r.gates, newGateAt(t, s.Port, secure, r.fence))
	}
	r.configure(1, "--tls-cert", store, "--tls-ca", ca.file)
	r.launch()
	pair := must.Get(tls.LoadX509KeyPair(store, store))(t)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	old := must.Get(client.Connect(t.Context(), r.gates[0].addr, client.WithTLS(&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12})))(t)
	t.Cleanup(func() { _ = old.Close() })
	must.Get(old.Create(t.Context(), "/a", []byte("data")))(t)
	out, err := r.leader().zkgo("cutover", "--dry-run")
	if err != nil || strings.Count(out, ": 3.9.5, ") != 1 || strings.Count(out, "the port accepts only TLS (remote error: tls: ") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	must.Do(t, r.cutover())
	c := must.Get(client.Connect(t.Context(), r.new[0].addr))(t)
	t.Cleanup(func() { _ = c.Close() })
	if data, _, err := c.Get(t.Context(), "/a"); err != nil || string(data) != "data" {
		t.Errorf("%q %v", data, err)
	}
}

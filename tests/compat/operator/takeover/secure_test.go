package takeover

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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	want  []string
}

// TestQuorumSecurity: zkgo follows servers that secure the connections between each other, and
// takes over from them. Without the right flags it says what is wrong and which flag helps, and
// goes on trying.
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
				{"plaintext", nil, []string{"--tls-cert"}},
				{"an authority that we don't know", []string{"--tls-cert", store, "--tls-ca", other.file}, []string{"--tls-ca"}},
				{"an authority that they don't know", []string{"--tls-cert", stranger, "--tls-ca", ca.file}, []string{"--tls-cert"}},
				{"no certificate", []string{"--tls-ca", ca.file}, []string{"--tls-cert"}},
				{"a certificate of another machine", []string{"--tls-cert", ca.issue("127.0.0.9"), "--tls-ca", ca.file}, []string{"--tls-cert"}},
				{"a login", []string{"--tls-cert", store, "--tls-ca", ca.file, "--sasl", "zk:secret"}, []string{"--sasl"}},
				{"another name", []string{"--tls-cert", store, "--tls-ca", ca.file, "--tls-server-name", "zk1"}, []string{"--tls-server-name"}},
			},
		},
		"SASL": {
			oracle.Options{
				Config: []string{"quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true", "quorum.auth.serverRequireSasl=true"},
				JVM:    []string{"-Djava.security.auth.login.config=" + jaas, "-Dzookeeper.fips-mode=false"}, // which 3.9 needs for DIGEST-MD5
			},
			[]string{"--sasl", "zk:secret"},
			[]refused{
				{"no login", nil, []string{"--sasl"}},
				{"a wrong password", []string{"--sasl", "zk:wrong"}, []string{"--sasl"}},
				{"an unknown user", []string{"--sasl", "zoo:secret"}, []string{"--sasl"}},
				{"TLS", []string{"--sasl", "zk:secret", "--tls-ca", ca.file}, []string{"--tls"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRigWith(t, 1, c.old, c.flags...)
			s := r.new[0]
			good := s.args
			for _, w := range c.refused {
				s.args = append(slices.Clone(good[:len(good)-len(c.flags)]), w.flags...)
				s.launch()
				problem := ""
				err := wait.For(patience, "", func() (bool, error) {
					st, err := s.status()
					problem = st.Problem
					return err == nil && problem != "", nil
				})
				t.Logf("%s: %v\n%s\n", w.name, err, problem)
				s.kill()
			}
			s.args = good
			r.sameState()
			_ = strings.Contains
		})
	}
}

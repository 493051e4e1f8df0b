package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.sign(pkix.Name{CommonName: "CA"}, true)
	a.issue("server.pem", pkix.Name{CommonName: "server"})
	a.write("ca.pem", pemOf(a.cert))
	return a
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func (a *authority) sign(name pkix.Name, ca bool, hosts ...string) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: name,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts, BasicConstraintsValid: true, IsCA: ca,
	}
	parent, signer := a.cert, a.key
	if ca {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, cert
}

// issue writes a key and a certificate into one file and returns its path.
func (a *authority) issue(file string, name pkix.Name, hosts ...string) string {
	a.t.Helper()
	key, cert := a.sign(name, false, hosts...)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(file, append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...))
}

func (a *authority) write(file string, data []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, file)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// options returns the options of a server that trusts a.
func (a *authority) options() KeyStores {
	return KeyStores{
		Key:   KeyStore{Location: filepath.Join(a.dir, "server.pem")},
		Trust: KeyStore{Location: filepath.Join(a.dir, "ca.pem")},
	}
}

// client returns the configuration of a client that trusts a; with a name it has a
// certificate.
func (a *authority) client(name *pkix.Name) *tls.Config {
	a.t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(a.cert)
	if name != nil {
		key, cert := a.sign(*name, false)
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
	}
	return c
}

// alice is a client's name, and its spelling in Java.
var alice = &pkix.Name{CommonName: "alice, the first", Organization: []string{"Example"}, Country: []string{"DE"}}

const aliceDN = `CN=alice\, the first,O=Example,C=DE`

// dialTCP connects to an address, with TLS if there is a configuration.
func dialTCP(t testing.TB, addr string, config *tls.Config) *wire {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if config != nil {
		config = config.Clone()
		config.ServerName = "127.0.0.1"
		nc = tls.Client(nc, config)
	}
	return &wire{t: t, nc: nc}
}

// connectTCP is dialTCP with a new session.
func connectTCP(t testing.TB, addr string, config *tls.Config) *wire {
	t.Helper()
	w := dialTCP(t, addr, config)
	w.handshake(proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true})
	if w.resp.TimeOut == 0 {
		t.Fatal("a new session was refused")
	}
	return w
}

// identities asks the server for the client's identities, without its address.
func (w *wire) identities() string {
	w.t.Helper()
	var resp proto.WhoAmIResponse
	w.decode(w.must(proto.OpWhoAmI, nil), &resp)
	var ids []string
	for _, id := range resp.IDs {
		if id.Scheme != "ip" {
			ids = append(ids, id.Scheme+":"+id.ID)
		}
	}
	return strings.Join(ids, " ")
}

// word sends a four-letter word and returns the whole answer.
func (w *wire) word(word string) string {
	w.t.Helper()
	w.write([]byte(word))
	b, err := io.ReadAll(w.nc)
	if err != nil {
		w.t.Fatalf("%s: %v", word, err)
	}
	return string(b)
}

// startTLS starts a server with a separate TLS port.
func startTLS(t *testing.T, a *authority, change func(*Config)) *Server {
	t.Helper()
	return startServer(t, func(c *Config) {
		c.SecureAddr, c.TLS = "127.0.0.1:0", &TLS{KeyStores: a.options()}
		if change != nil {
			change(c)
		}
	})
}

func TestTLSClient(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startTLS(t, a, nil)
	w := connectTCP(t, s.ClientAddr(), a.client(alice))
	if got := w.identities(); got != "x509:"+aliceDN {
		t.Errorf("identities %q", got)
	}
	big := strings.Repeat("x", 900<<10)
	acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", Data: []byte("0"), ACL: acl})
	if data, _ := w.get("/a", true); data != "0" {
		t.Errorf("data %q", data)
	}
	w.send(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte(big), Version: -1})
	w.wantEvent(proto.EventNodeDataChanged, "/a")
	if got := w.recv(); got.Err != proto.Ok {
		t.Errorf("set: %v", got.Err)
	}
	if data, _ := w.get("/a", false); data != big {
		t.Errorf("%d bytes, want %d", len(data), len(big))
	}
	bob := connectTCP(t, s.ClientAddr(), a.client(&pkix.Name{CommonName: "bob"}))
	if got := bob.call(proto.OpGetData, &proto.GetDataRequest{Path: "/a"}); got.Err != proto.ErrNoAuth {
		t.Errorf("another certificate reads: %v", got.Err)
	}
	if got := dialTCP(t, s.ClientAddr(), a.client(alice)).word("ruok"); got != "imok" {
		t.Errorf("ruok: %q", got)
	}
	for _, c := range sourceOf(s).Conns() {
		if !c.Secure {
			t.Errorf("%s does not count as secure", c.Addr)
		}
	}
}

func TestTLSSuperUser(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startTLS(t, a, func(c *Config) { c.TLS.SuperUser = aliceDN })
	w := connectTCP(t, s.ClientAddr(), a.client(alice))
	if got, want := w.identities(), "x509:"+aliceDN+" super:"; got != want {
		t.Errorf("identities %q, want %q", got, want)
	}
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}})
	w.set("/a", "the super user may")
	bob := connectTCP(t, s.ClientAddr(), a.client(&pkix.Name{CommonName: "bob"}))
	if got := bob.call(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1}); got.Err != proto.ErrNoAuth {
		t.Errorf("another certificate writes: %v", got.Err)
	}
}

func TestTLSClientAuth(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	foreign := stranger.client(alice)
	foreign.RootCAs = a.client(nil).RootCAs
	for _, tc := range []struct {
		auth   string
		name   string
		config *tls.Config
		want   string // identities; "-": refused
	}{
		{"none", "without", a.client(nil), ""},
		{"none", "with", a.client(alice), ""},
		{"want", "without", a.client(nil), ""},
		{"want", "with", a.client(alice), "x509:" + aliceDN},
		{"want", "of a stranger", foreign, "-"},
		{"need", "without", a.client(nil), "-"},
		{"need", "with", a.client(alice), "x509:" + aliceDN},
		{"need", "of a stranger", foreign, "-"},
	} {
		t.Run(tc.auth+" "+tc.name, func(t *testing.T) {
			t.Parallel()
			s := startTLS(t, a, func(c *Config) { c.TLS.ClientAuth = tc.auth })
			if tc.want != "-" {
				if got := connectTCP(t, s.ClientAddr(), tc.config).identities(); got != tc.want {
					t.Errorf("identities %q, want %q", got, tc.want)
				}
				return
			}
			w := dialTCP(t, s.ClientAddr(), tc.config)
			_, _ = w.nc.Write([]byte("ruok")) // TLS 1.3 reports the refusal only later
			if b, err := io.ReadAll(w.nc); err == nil || len(b) > 0 {
				t.Errorf("answered %q, %v", b, err)
			}
			eventually(t, "one failed handshake counted", func() bool { return s.stats.HandshakesFailed.Load() == 1 })
		})
	}
}

// TestTLSOnly: neither a plaintext client nor a silent one blocks other clients.
func TestTLSOnly(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startTLS(t, a, func(c *Config) { c.Limits.SessionlessTimeout = 2 * patience })
	silent := dialTCP(t, s.ClientAddr(), nil)
	plain := dialTCP(t, s.ClientAddr(), nil)
	plain.write([]byte("srvr"))
	if b, _ := io.ReadAll(plain.nc); strings.Contains(string(b), "version") {
		t.Errorf("answered in plaintext: %q", b)
	}
	eventually(t, "one failed handshake counted", func() bool { return s.stats.HandshakesFailed.Load() == 1 })
	connectTCP(t, s.ClientAddr(), a.client(alice)).must(proto.OpPing, nil)
	eventually(t, "the silent client alone shakes hands", func() bool { return s.stats.Handshaking.Load() == 1 })
	_ = silent.nc.Close()
	eventually(t, "no handshake is in progress", func() bool { return s.stats.Handshaking.Load() == 0 })
}

// TestTLSHandshakeLimit: the server closes a client that doesn't finish the handshake.
func TestTLSHandshakeLimit(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, unified := range []bool{false, true} {
		s := startTLS(t, a, func(c *Config) {
			c.Limits.SessionlessTimeout, c.TickTime = 50*time.Millisecond, 20*time.Millisecond
			if unified {
				c.ClientAddr, c.SecureAddr, c.PortUnification = c.SecureAddr, "", true
			}
		})
		silent := dialTCP(t, s.ClientAddr(), nil)
		silent.write([]byte{tlsport.RecordHandshake, 3, 1})
		silent.wantClosed()
	}
}

func TestPortUnification(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startTLS(t, a, func(c *Config) {
		c.ClientAddr, c.SecureAddr, c.PortUnification = "127.0.0.1:0", "", true
	})
	for range 2 {
		secure, plain := connectTCP(t, s.ClientAddr(), a.client(alice)), connectTCP(t, s.ClientAddr(), nil)
		if got := secure.identities(); got != "x509:"+aliceDN {
			t.Errorf("identities %q", got)
		}
		if got := plain.identities(); got != "" {
			t.Errorf("identities in plaintext %q", got)
		}
		secure.create("/a-", nil, proto.ModePersistentSequential)
		plain.create("/a-", nil, proto.ModePersistentSequential)
		if got := dialTCP(t, s.ClientAddr(), nil).word("ruok"); got != "imok" {
			t.Errorf("ruok: %q", got)
		}
		if got := dialTCP(t, s.ClientAddr(), a.client(alice)).word("ruok"); got != "imok" {
			t.Errorf("ruok by TLS: %q", got)
		}
	}
	w := dialTCP(t, s.ClientAddr(), nil)
	for _, b := range []byte("ruo") {
		w.write([]byte{b})
	}
	if got := w.word("k"); got != "imok" {
		t.Errorf("ruok byte by byte: %q", got)
	}
	dialTCP(t, s.ClientAddr(), nil).nc.Close()
	if n := s.stats.HandshakesFailed.Load(); n != 0 {
		t.Errorf("%d failed handshakes counted", n)
	}
}

func TestTLSReload(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startTLS(t, a, func(c *Config) { c.TLS.Reload = true })
	name := func() string {
		w := connectTCP(t, s.ClientAddr(), a.client(alice))
		return w.nc.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	before := connectTCP(t, s.ClientAddr(), a.client(alice))
	if got := name(); got != "server" {
		t.Fatalf("the server is %q", got)
	}
	a.issue("server.pem", pkix.Name{CommonName: "renewed, and longer"})
	if got := name(); got != "renewed, and longer" {
		t.Errorf("after the change the server is %q", got)
	}
	a.write("server.pem", []byte("damaged"))
	if got := name(); got != "renewed, and longer" {
		t.Errorf("with a damaged file the server is %q", got)
	}
	before.must(proto.OpPing, nil)
}

func TestTLSFromZooCfg(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	o := a.options()
	base := "dataDir=/tmp/x\nssl.keyStore.location=" + o.Key.Location + "\nssl.trustStore.location=" + o.Trust.Location + "\n"
	for _, tc := range []struct {
		text, want string // want: part of the error
	}{
		{"clientPort=0\nclient.portUnification=true\n" + base, ""},
		{"secureClientPort=0\nsecureClientPortAddress=127.0.0.1\nssl.clientAuth=want\nclient.certReload=true\n" + base, ""},
		{"secureClientPort=0\n" + base + "ssl.authProvider=mine\nauthProvider.mine=a.B\n", "ssl.authProvider"},
		{"secureClientPort=0\n" + base + "ssl.crl=true\n", ""},
		{"secureClientPort=0\ndataDir=/tmp/x\n", "ssl.keyStore.location"},
		{"clientPort=0\ndataDir=/tmp/x\nssl.crl=true\n", ""},
	} {
		z, err := zoocfg.ParseText("zoo.cfg", tc.text)
		if err != nil {
			t.Fatalf("%s: %v", tc.text, err)
		}
		c, err := fromZooCfg(z, allFormats())
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if strings.Contains(tc.text, "ssl.keyStore") != (c.TLS != nil) {
			t.Errorf("%s: TLS %+v", tc.text, c.TLS)
		}
		if c.TLS != nil && (c.TLS.Reload != strings.Contains(tc.text, "certReload") || c.PortUnification == (c.SecureAddr != "")) {
			t.Errorf("%s: %+v", tc.text, c)
		}
	}
}

// As in ZooKeeper, the names of clients are checked only if names are checked at all.
func TestHostnameVerificationCoversClients(t *testing.T) {
	t.Parallel()
	stores := strings.ReplaceAll(newAuthority(t).sslQuorum(1, ""), "ssl.quorum.", "ssl.")
	for text, want := range map[string]bool{
		"ssl.clientHostnameVerification=true":                                 true,
		"ssl.clientHostnameVerification=true\nssl.hostnameVerification=false": false,
		"ssl.hostnameVerification=true":                                       false,
	} {
		z, err := zoocfg.ParseText("zoo.cfg", "dataDir=/x\nsecureClientPort=2281\n"+stores+"\n"+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if c, err := fromZooCfg(z, allFormats()); err != nil || c.TLS.VerifyClientHost != want {
			t.Errorf("%q: %v, %v", text, c.TLS, err)
		}
	}
}

package ensemble

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// apart gives each server its own address, so that a certificate can be another server's.
func (c *cluster) apart() {
	for id, n := range c.nodes {
		n.host = fmt.Sprintf("127.0.0.%d", id)
	}
}

// key and trust return the paths of a server's PEM files.
func (n *node) key() string   { return filepath.Join(n.dir, "key.pem") }
func (n *node) trust() string { return filepath.Join(n.dir, "trust.pem") }

// stores returns the lines of zoo.cfg that name them.
func (n *node) stores() []string { return append(store("key", n.key()), store("trust", n.trust())...) }

// certified writes a server's PEM files.
func (c *cluster) certified(a *authority, ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		put(c.t, c.nodes[id].key(), a.issue(c.nodes[id].host))
		put(c.t, c.nodes[id].trust(), a.pem())
	}
}

// formWith forms an ensemble of servers with individual settings.
func (c *cluster) formWith(settings map[int][]string) {
	c.t.Helper()
	for id := 1; id <= len(settings); id++ {
		c.write(id, append(c.lines(1, 2, 3), settings[id]...)...)
	}
	c.start(1, 2, 3)
	c.await(1, 2, 3)
}

// restart stops a server as an operator does and starts it with other settings.
func (c *cluster) restart(id int, settings ...string) {
	c.t.Helper()
	c.stop(id)
	c.write(id, append(c.lines(1, 2, 3), settings...)...)
	c.start(id)
}

// shown returns the certificate that the server presents to a TLS client on its quorum
// port, or nil if it doesn't speak TLS.
func (n *node) shown() *x509.Certificate {
	var cert *x509.Certificate
	d := &net.Dialer{Timeout: process.Patience}
	conn, err := tls.DialWithDialer(d, "tcp", fmt.Sprintf("%s:%d", n.host, n.quorum), &tls.Config{
		InsecureSkipVerify: true, // the test only looks at the certificate
		VerifyConnection:   func(s tls.ConnectionState) error { cert = s.PeerCertificates[0]; return nil },
	})
	if err == nil {
		_ = conn.Close()
	}
	return cert
}

// survives kills the leader under load, restarts it, and verifies the clients' writes.
func (c *cluster) survives(clients ...*client) {
	c.t.Helper()
	c.killLeader(clients...)
	c.verify(clients, 1, 2, 3)
}

// killLeader kills the leader under load and restarts it.
func (c *cluster) killLeader(clients ...*client) {
	c.t.Helper()
	lead := c.leader()
	c.kill(lead)
	for _, w := range clients {
		w.more(c, 20)
	}
	c.start(lead)
	c.await(lead)
}

// TestTLS forms an ensemble over TLS, kills its leader and restarts it, with PEM files and
// with the stores that Java's tools make.
func TestTLS(t *testing.T) {
	t.Parallel()
	for name, stores := range map[string]func(*testing.T, *cluster) map[int][]string{
		"PEM": func(t *testing.T, c *cluster) map[int][]string {
			c.certified(newAuthority(t, "CA"), 1, 2, 3)
			return map[int][]string{1: c.nodes[1].stores(), 2: c.nodes[2].stores(), 3: c.nodes[3].stores()}
		},
		"JKS and PKCS12": javaStores,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, superDigest, "sslQuorum=true")
			c.apart()
			c.formWith(stores(t, c))
			for id, n := range c.nodes {
				if cert := n.shown(); cert == nil {
					t.Errorf("server %d does not use TLS on its quorum port", id)
				}
			}
			c.survives(c.connect("a", 1, 2, 3), c.connect("b", 3, 2, 1))
		})
	}
}

// TestTLSNewCertificates replaces the authority and all certificates of two servers that
// are never restarted. The third is restarted, and trusts only the new authority: it can
// join and accept connections only if the two use the new files.
func TestTLSNewCertificates(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest, "sslQuorum=true", "sslQuorumReloadCertFiles=true")
	c.apart()
	old, fresh := newAuthority(t, "old CA"), newAuthority(t, "new CA")
	c.certified(old, 1, 2, 3)
	settings := make(map[int][]string)
	for id, n := range c.nodes {
		settings[id] = n.stores()
	}
	c.formWith(settings)
	clients := []*client{c.connect("a", 1, 2, 3), c.connect("b", 2, 1, 3)}
	for id, n := range c.nodes {
		put(t, n.trust(), old.pem(), fresh.pem())
		clients[id%2].more(c, 5)
	}
	for id, n := range c.nodes {
		put(t, n.key(), fresh.issue(n.host))
		clients[id%2].more(c, 5)
		c.eventually(fmt.Sprintf("server %d shows its new certificate", id), func() bool {
			cert := n.shown()
			return cert != nil && cert.Issuer.CommonName == "new CA"
		})
	}
	for _, n := range c.nodes {
		put(t, n.trust(), fresh.pem())
	}
	c.kill(3)
	c.start(3)
	c.await(3) // the leader and server 3 have connected to each other
	// A server with a certificate of the old authority is refused.
	c.kill(3)
	put(t, c.nodes[3].key(), old.issue(c.nodes[3].host))
	c.start(3)
	c.says(3, "does not accept our certificate", `by \"CN=old CA\"`)
	if c.mode(3) != "" {
		t.Error("server 3 serves with a certificate that nobody accepts")
	}
	// New files should be enough to admit it, without a restart.
	put(t, c.nodes[3].key(), fresh.issue(c.nodes[3].host))
	c.await(3)
	put(t, c.nodes[1].trust(), []byte("damaged")) // is logged, and the last good file stays in use
	if cert := c.nodes[1].shown(); cert == nil || cert.Issuer.CommonName != "new CA" {
		t.Errorf("server 1 shows %v", cert)
	}
	c.says(1, "certificates not reloaded")
	put(t, c.nodes[1].trust(), fresh.pem())
	c.survives(clients...)
}

// TestChangeToTLS migrates an ensemble from plaintext to TLS in the steps of ZooKeeper's
// administrator's guide, and back, one server after the other, while clients write.
func TestChangeToTLS(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest)
	c.apart()
	c.certified(newAuthority(t, "CA"), 1, 2, 3)
	c.form(1, 2, 3)
	clients := []*client{c.connect("a", 1, 2, 3), c.connect("b", 3, 1, 2)}
	unified := []string{"sslQuorum=false", "portUnification=true"}
	both := []string{"sslQuorum=true", "portUnification=true"}
	only := []string{"sslQuorum=true", "portUnification=false"}
	for _, step := range [][]string{unified, both, only, both, unified, nil} {
		for id := 1; id <= 3; id++ {
			c.restart(id, append(slices.Clone(step), c.nodes[id].stores()...)...)
			c.await(id)
			for _, w := range clients {
				w.more(c, 5)
			}
			if speaks, should := c.nodes[id].shown() != nil, step != nil; speaks != should {
				t.Errorf("%v: server %d speaks TLS: %t", step, id, speaks)
			}
		}
		for id := 1; id <= 3; id++ {
			// A server that connects names the server that it connects to; the test's own
			// connection is refused as one from "a server at".
			if refused(c.output(id), " stream to ") {
				t.Errorf("%v: server %d was refused by another:\n%s", step, id, c.output(id))
			}
		}
	}
	c.verify(clients, 1, 2, 3)
}

// TestTLSRefused starts server 3 with settings that the others must not accept. It doesn't
// join, and the logs on both sides say which server was refused and why. The others
// continue, and accept server 3 again after it is fixed.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest)
	c.apart()
	ours, other := newAuthority(t, "our CA"), newAuthority(t, "another CA")
	c.certified(ours, 1, 2, 3)
	settings := make(map[int][]string)
	for id, n := range c.nodes {
		settings[id] = append(n.stores(), "sslQuorum=true")
	}
	c.formWith(settings)
	clients := []*client{c.connect("a", 1, 2)}
	good := settings[3]
	expired := func(x *x509.Certificate) { x.NotAfter = time.Now().Add(-time.Minute) }
	for name, tc := range map[string]struct {
		settings []string
		key      []byte
		says     string   // by server 3, when it connects
		they     []string // by the server that it connects to
	}{
		"plaintext":                 {says: "requires TLS", they: []string{"from server 3", "does not use TLS"}},
		"another authority":         {good, other.issue("127.0.0.3"), "does not accept our certificate", []string{"at 127.0.0.1:", `by \"CN=another CA\"`}},
		"another server's name":     {good, ours.issue("127.0.0.2"), "does not accept our certificate", []string{"from server 3", "it is another server's, the one at 127.0.0.2"}},
		"the name of no server":     {good, ours.issue("127.0.0.77"), "does not accept our certificate", []string{"from server 3", "it names neither a host of server 3", "which is known at 127.0.0.3"}},
		"a certificate that is old": {good, ours.issue("127.0.0.3", expired), "does not accept our certificate", []string{"at 127.0.0.1:", "has expired"}},
	} {
		c.stop(3)
		for id := 1; id <= 2; id++ { // a refusal is logged only once in a while
			c.stop(id)
			c.start(id)
		}
		c.await(1, 2)
		if tc.key != nil {
			put(t, c.nodes[3].key(), tc.key)
		}
		c.write(3, append(c.lines(1, 2, 3), tc.settings...)...)
		c.start(3)
		c.eventually(name+": both sides say why", func() bool {
			return refused(c.output(3), " to server ", tc.says) && (refused(c.output(1), tc.they...) || refused(c.output(2), tc.they...))
		})
		if c.mode(3) != "" {
			t.Errorf("%s: server 3 serves", name)
		}
		clients[0].more(c, 5)
	}
	c.certified(ours, 3)
	c.restart(3, good...)
	c.await(3)
	c.verify(clients, 1, 2, 3)
}

// refused reports whether a log has a line about a refusal that contains all the words.
func refused(log string, words ...string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "refused to talk to another server") &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return true
		}
	}
	return false
}

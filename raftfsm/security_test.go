package raftfsm

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/session"
)

// secured returns TLS settings for the servers of a test, all under one authority. The names are
// in all certificates.
func secured(t *testing.T, names ...string) func(id uint64) *TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := func(serial uint64) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(int64(serial) + 1), Subject: pkix.Name{Organization: []string{"Test"}},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), BasicConstraintsValid: true}
	}
	sign := func(tmpl, parent *x509.Certificate) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	root := template(0)
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	ca := sign(root, root)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return func(id uint64) *TLS {
		tmpl := template(id)
		tmpl.DNSNames = append([]string{hostOf(id)}, names...)
		leaf := sign(tmpl, ca)
		cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}}, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
		return &TLS{Config: func() *tls.Config { return cfg }, VerifyHost: true, VerifyCaller: true}
	}
}

// sure returns SASL settings for the servers of a test. Each server requires SASL of
// the others.
func sure(uint64) *SASL {
	return &SASL{Users: map[string]string{"zk": "secret"}, User: "zk", Password: "secret", Login: true, Require: true}
}

// eavesdropper is a network that counts the connections with TLS or SASL, and those
// with neither.
type eavesdropper struct {
	mu            sync.Mutex
	plain, secure int
}

func (e *eavesdropper) on(n quorum.Network) quorum.Network { return overheard{n, e} }

func (e *eavesdropper) counts() (plain, secure int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.plain, e.secure
}

type overheard struct {
	quorum.Network
	e *eavesdropper
}

func (o overheard) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := o.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &overheardConn{Conn: c, e: o.e}, nil
}

type overheardConn struct {
	net.Conn
	e    *eavesdropper
	once sync.Once
}

func (c *overheardConn) Write(b []byte) (int, error) {
	c.once.Do(func() {
		c.e.mu.Lock()
		defer c.e.mu.Unlock()
		if b[0] == 0x16 || strings.HasPrefix(string(b), "zkgopeer\x00\x02") {
			c.e.secure++
		} else {
			c.e.plain++
		}
	})
	return c.Conn.Write(b)
}

// TestSecureEnsemble runs over TLS everything that servers do with each other:
// formation, replication, commands and reports of followers, a snapshot, the death of a
// leader. No connection is without TLS.
func TestSecureEnsemble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		security := secured(t)
		secureEnsemble(t, func(id uint64, cfg *Config) { cfg.Peers.TLS = security(id) })
	})
}

// TestSureEnsemble does the same with SASL.
func TestSureEnsemble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		secureEnsemble(t, func(id uint64, cfg *Config) { cfg.Peers.SASL = sure(id) })
	})
}

func secureEnsemble(t *testing.T, secure func(uint64, *Config)) {
	t.Helper()
	var ears eavesdropper
	c := newCluster(t, 3)
	for _, m := range c.list {
		c.start(m.ID, func(cfg *Config) {
			secure(m.ID, cfg)
			cfg.Peers.Network = ears.on(cfg.Peers.Network)
		})
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	lead, l := c.leader()
	id, f := c.follower()
	s := f.attach(10 * time.Second)
	f.setLive(s.ID)
	if o := f.do(create(s, "/a", 0)); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	begin := time.Now()
	c.eventually("half a minute", func() bool { return time.Since(begin) > 30*time.Second })
	if o := f.do(create(s, "/lives", 0)); o.code != proto.Ok {
		t.Fatalf("the reports of the follower did not keep its session alive: %+v", o)
	}

	var rest []string
	for x := range c.rigs {
		if x != id {
			rest = append(rest, hostOf(x))
		}
	}
	c.net.Partition([]string{hostOf(id)}, rest)
	ls := l.attach(time.Minute)
	for i := range 50 {
		l.do(create(ls, fmt.Sprintf("/b%d", i), 0))
	}
	for x, y := range c.rigs {
		if x != id {
			y.compact()
		}
	}
	c.net.Rejoin([]string{hostOf(id)}, rest)
	f.recorder.wait(t, "Jumped", func() bool { return f.jumped > 0 })
	c.settled()

	c.kill(lead)
	before := time.Now()
	c.leader()
	if d := time.Since(before); d > ensemble.ElectionTimeout {
		t.Errorf("the death of the leader was noticed after %v: by a timeout", d)
	}
	r := c.rigs[id]
	if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, "/c", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	if plain, secure := ears.counts(); plain > 0 || secure < 10 {
		t.Errorf("%d connections go without, %d do not", plain, secure)
	}
}

// TestRollingChangeToTLS switches an ensemble from plaintext to TLS and back by
// restarting one server after another, while a client writes.
func TestRollingChangeToTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector; not with -short")
	}
	inBubble(t, func(t *testing.T) {
		security := secured(t)
		plain := func(uint64, *Config) {}
		accepting := func(id uint64, cfg *Config) { // portUnification
			cfg.Peers.TLS = security(id)
			cfg.Peers.TLS.DialPlain, cfg.Peers.TLS.AcceptPlain = true, true
		}
		dialling := func(id uint64, cfg *Config) { // sslQuorum as well
			cfg.Peers.TLS = security(id)
			cfg.Peers.TLS.AcceptPlain = true
		}
		only := func(id uint64, cfg *Config) { cfg.Peers.TLS = security(id) }
		rollingChange(t, []func(uint64, *Config){accepting, dialling, only, dialling, accepting, plain})
	})
}

// TestRollingChangeToSASL does the same with SASL, in the steps of ZooKeeper's guide.
func TestRollingChangeToSASL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		plain := func(uint64, *Config) {}
		enabled := func(id uint64, cfg *Config) {
			cfg.Peers.SASL = sure(id)
			cfg.Peers.SASL.Login, cfg.Peers.SASL.Require = false, false
		}
		learner := func(id uint64, cfg *Config) {
			cfg.Peers.SASL = sure(id)
			cfg.Peers.SASL.Require = false
		}
		server := func(id uint64, cfg *Config) { cfg.Peers.SASL = sure(id) }
		rollingChange(t, []func(uint64, *Config){enabled, learner, server, learner, enabled, plain})
	})
}

// rollingChange goes through the steps. After the third step, all connections must be
// secure.
func rollingChange(t *testing.T, steps []func(uint64, *Config)) {
	t.Helper()
	var ears eavesdropper
	c := newCluster(t, 3).onDisk()
	c.startAll()
	_, f := c.follower()
	s := f.attach(time.Hour)
	written := 0
	write := func(r *rig) {
		t.Helper()
		path := fmt.Sprintf("/w%d", written)
		o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, path, 0) })
		if o.code != proto.Ok && o.code != proto.ErrNodeExists {
			t.Fatalf("%s: %+v", path, o)
		}
		written++
	}
	for step, how := range steps {
		with := func(id uint64) func(*Config) {
			return func(cfg *Config) {
				how(id, cfg)
				cfg.Peers.Network = ears.on(cfg.Peers.Network)
			}
		}
		for id := uint64(1); id <= 3; id++ {
			c.stop(id)
			c.leader()
			other := c.rigs[id%3+1]
			other.awaitServed()
			if o, ok := other.tryReattach(s); ok {
				s.Gen = o.attached.Gen
			}
			write(other) // with two of three servers
			r := c.start(id, with(id))
			r.awaitServed()
			write(other)
		}
		c.settled()
		if step == 2 {
			ears.mu.Lock()
			ears.plain = 0
			ears.mu.Unlock()
			c.kill(2)
			c.leader()
			c.start(2, with(2)).awaitServed()
			if plain, secure := ears.counts(); plain > 0 || secure == 0 {
				t.Errorf("at the end of the change: %d connections go without, %d do not", plain, secure)
			}
		}
	}
	_, r := c.leader()
	for i := range written {
		if !r.exists(fmt.Sprintf("/w%d", i)) {
			t.Errorf("write %d is lost", i)
		}
	}
}

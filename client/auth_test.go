package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestAuthIsSentAgain(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		ctx := bounded(t)
		c := connect(t, zs, client.WithAuth("digest", []byte("ann:secret")))
		must(t, c.AddAuth(ctx, "digest", []byte("bob:secret")))
		_, err := c.Create(ctx, "/a", []byte("1"), client.WithACL(client.CreatorACL(client.PermAll)...))
		must(t, err)
		other := connect(t, zs)
		if _, _, err := other.Get(ctx, "/a"); !errors.Is(err, client.ErrNoAuth) {
			t.Fatalf("somebody else: %v", err)
		}
		states := c.Subscribe()
		defer states.Close()
		zs.DropConnections()
		until(t, states, client.StateReconnected)
		if _, _, err := c.Get(ctx, "/a"); err != nil {
			t.Fatal(err)
		}
		ids, err := c.WhoAmI(ctx)
		must(t, err)
		for _, want := range []string{"ann", "bob"} {
			if !slices.Contains(ids, client.ID{Scheme: "digest", ID: want}) {
				t.Errorf("the server knows %v, not %s", ids, want)
			}
		}
		acl, _, err := c.GetACL(ctx, "/a")
		must(t, err)
		if len(acl) != 2 {
			t.Errorf("acl %v", acl)
		}
		_, err = c.SetACL(ctx, "/a", client.WorldACL(client.PermRead), 0)
		must(t, err)
		if _, _, err := other.Get(ctx, "/a"); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusedAuth(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		ctx := bounded(t)
		c := connect(t, zs)
		states := c.Subscribe()
		defer states.Close()
		if err := c.AddAuth(ctx, "nonsense", nil); !errors.Is(err, client.ErrAuthFailed) {
			t.Fatalf("auth: %v", err)
		}
		until(t, states, client.StateAuthFailed)
		until(t, states, client.StateReconnected)
		if _, _, err := c.Exists(ctx, "/"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		_, err := client.Connect(ctx, "zk", dialer(zs), client.WithAuth("nonsense", nil))
		if !errors.Is(err, client.ErrAuthFailed) {
			t.Errorf("connect: %v", err)
		}
		_, err = client.Connect(ctx, "zk", dialer(zs), client.WithSASL(client.DigestMD5("bob", "x")))
		if !errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "no SASL configured") {
			t.Errorf("SASL without SASL on the server: %v", err)
		}
	})
}

func TestSASL(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		ctx := bounded(t)
		c := connect(t, zs, client.WithSASL(client.DigestMD5("bob", `se"cr\et, ü`)))
		states := c.Subscribe()
		defer states.Close()
		for range 2 {
			ids, err := c.WhoAmI(ctx)
			must(t, err)
			if !slices.Contains(ids, client.ID{Scheme: "sasl", ID: "bob"}) {
				t.Errorf("the server knows %v", ids)
			}
			zs.DropConnections()
			until(t, states, client.StateReconnected)
		}
		_, err := client.Connect(ctx, "zk", dialer(zs), client.WithSASL(client.DigestMD5("bob", "wrong")))
		if !errors.Is(err, client.ErrAuthFailed) {
			t.Errorf("a wrong password: %v", err)
		}
	}, zktest.WithConfig(func(c *server.Config) {
		c.Auth.SASL = &server.SASL{Users: sasl.Users{"bob": `se"cr\et, ü`}}
	}))
}

// identity returns a self-signed certificate.
func identity(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	serverCert, serverPool := identity(t, "localhost")
	clientCert, clientPool := identity(t, "ann")
	zs := zktest.Run(t, zktest.WithConfig(func(c *server.Config) {
		c.SecureAddr = "127.0.0.1:0"
		c.TLS = &server.TLS{Config: &tls.Config{
			Certificates: []tls.Certificate{serverCert}, ClientCAs: clientPool, ClientAuth: tls.RequireAndVerifyClientCert,
		}}
	}))
	_, port, _ := splitAddr(zs.Server().ClientAddrs()[0])
	ctx := bounded(t)
	cfg := &tls.Config{RootCAs: serverPool, Certificates: []tls.Certificate{clientCert}}
	lookup := client.WithResolver(localhost)
	c, err := client.Connect(ctx, "localhost:"+port, client.WithTLS(cfg), lookup)
	must(t, err)
	defer c.Close()
	ids, err := c.WhoAmI(ctx)
	must(t, err)
	if !slices.ContainsFunc(ids, func(id client.ID) bool { return id.Scheme == "x509" }) {
		t.Errorf("the server knows %v", ids)
	}
	short, cancel := withTimeout(t, 30*time.Second)
	defer cancel()
	tried := make(chan struct{}, 100)
	go func() { // every attempt fails: wait for two of them
		<-tried
		<-tried
		cancel()
	}()
	_, err = client.Connect(short, "elsewhere:"+port, client.WithTLS(cfg), client.WithResolver(counting(tried)))
	var wrong x509.HostnameError
	if !errors.As(err, &wrong) {
		t.Errorf("a certificate of another host: %v", err)
	}
}

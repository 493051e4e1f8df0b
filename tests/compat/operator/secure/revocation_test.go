package secure

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRevokedClients connects Java clients to both servers, with certificates that name a
// revocation list.
func TestRevokedClients(t *testing.T) {
	needOracle(t)
	need(t, "javac", "keytool", "openssl")
	t.Parallel()
	c := newCerts(t)
	revoked := big.NewInt(0)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/crl" {
			http.NotFound(w, r)
			return
		}
		b, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
			Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour),
			RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: revoked, RevocationTime: time.Now().Add(-time.Minute)}},
		}, c.cert, c.key)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(web.Close)
	c.crl = web.URL + "/crl"
	c.issue("server", pkix.Name{CommonName: "server"}, time.Hour)
	c.issue("good", pkix.Name{CommonName: "good"}, time.Hour)
	revoked.Set(c.issue("revoked", pkix.Name{CommonName: "revoked"}, time.Hour).SerialNumber)
	c.crl = web.URL + "/nothing"
	c.issue("unknown", pkix.Name{CommonName: "unknown"}, time.Hour)
	trust := c.trustStore("JKS")
	tls := func(who string) string {
		return fmt.Sprintf("client.secure=true;clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty;ssl.keyStore.location=%s;ssl.keyStore.password=%s;"+
			"ssl.trustStore.location=%s;ssl.trustStore.password=%s", c.path(who+".p12"), storePassword, trust, storePassword)
	}
	lines := []string{
		"ssl.keyStore.location=" + c.path("server.p12"), "ssl.keyStore.password=" + storePassword,
		"ssl.trustStore.location=" + trust, "ssl.trustStore.password=" + storePassword, "ssl.crl=true",
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
	}
	clients := []someClient{{"good", true, tls("good")}, {"revoked", true, tls("revoked")}, {"unknown", true, tls("unknown")}}
	java, login := compile(t, "Secure"), file(t, "jaas.conf", clientJAAS)
	want := run(t, java, login, clients, zooKeeper(t, login, lines))
	got := run(t, java, login, clients, zkgo(t, login, lines))
	if got != want {
		t.Errorf("zkgo:\n%s\nZooKeeper:\n%s", got, want)
	}
	t.Log("\n" + got)
}

package secure

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// clientJAAS names clients that know their password, and one that doesn't.
const clientJAAS = jaas + `
Wrong { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="guess"; };
Super { org.apache.zookeeper.server.auth.DigestLoginModule required username="super" password="adminpw"; };
`

// superDigest is the digest of super:test.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// someClient is a line for the Java program: how one client connects.
type someClient struct {
	name     string
	secure   bool // to the TLS port
	settings string
}

// TestJavaClients makes Java clients authenticate to ZooKeeper and to zkgo, and compares the
// identities and permissions that each server gives them.
func TestJavaClients(t *testing.T) {
	needOracle(t)
	need(t, "javac", "keytool", "openssl")
	t.Parallel()
	c := newCerts(t)
	c.issue("server", pkix.Name{CommonName: "server"}, time.Hour)
	c.issue("alice", pkix.Name{CommonName: "alice, the first", OrganizationalUnit: []string{"Ops"}, Country: []string{"DE"}}, time.Hour)
	c.issue("admin", pkix.Name{CommonName: "admin"}, time.Hour)
	trust := c.trustStore("JKS")
	tls := func(who string) string {
		return fmt.Sprintf("client.secure=true;clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty;ssl.keyStore.location=%s;ssl.keyStore.password=%s;"+
			"ssl.trustStore.location=%s;ssl.trustStore.password=%s", c.path(who+".p12"), storePassword, trust, storePassword)
	}
	const sasl = "sasl.client=true;sasl.clientconfig="
	java := compile(t, "Secure")
	login := file(t, "jaas.conf", clientJAAS)
	loadSASL := "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	// ZooKeeper can't read the encrypted keys that today's OpenSSL makes.
	encrypted := strings.NewReplacer(c.path("server.p12"), c.encrypted("server"))
	tlsLines := []string{
		"ssl.keyStore.location=" + c.path("server.p12"), "ssl.keyStore.password=" + storePassword,
		"ssl.trustStore.location=" + trust, "ssl.trustStore.password=" + storePassword,
		"X509AuthenticationProvider.superUser=CN=admin", "superUser=super", "DigestAuthenticationProvider.superDigest=" + superDigest,
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		loadSASL,
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
	}
	for _, group := range []struct {
		name    string
		lines   []string
		clients []someClient
	}{
		{"everybody", append([]string{"client.portUnification=true"}, tlsLines...), []someClient{
			{"nobody", false, ""},
			{"digest", false, "auth.digest=eve:pw"},
			{"super-digest", false, "auth.digest=super:test"},
			{"unknown-scheme", false, "auth.nix=x"},
			{"sasl", false, sasl + "Client"},
			{"sasl-wrong", false, sasl + "Wrong"},
			{"sasl-super", false, sasl + "Super"},
			{"unified", false, tls("alice")},
			{"x509", true, tls("alice")},
			{"x509-super", true, tls("admin")},
			{"x509-sasl", true, tls("alice") + ";" + sasl + "Client"},
		}},
		{"enforced", []string{"enforce.auth.enabled=true", "enforce.auth.schemes=sasl,digest", loadSASL}, []someClient{
			{"nobody", false, ""},
			{"digest", false, "auth.digest=eve:pw"},
			{"sasl", false, sasl + "Client"},
			{"sasl-wrong", false, sasl + "Wrong"},
		}},
		{"SASL for all", []string{"sessionRequireClientSASLAuth=true", "allowSaslFailedClients=true", loadSASL}, []someClient{
			{"nobody", false, ""},
			{"digest", false, "auth.digest=eve:pw"},
			{"sasl", false, sasl + "Client"},
		}},
		{"failures allowed", []string{"allowSaslFailedClients=true", loadSASL}, []someClient{
			{"sasl-wrong", false, sasl + "Wrong"},
		}},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			want := run(t, java, login, group.clients, zooKeeper(t, login, group.lines))
			got := run(t, java, login, group.clients, zkgo(t, login, strings.Split(encrypted.Replace(strings.Join(group.lines, "\n")), "\n")))
			if got != want {
				t.Errorf("zkgo:\n%s\nZooKeeper:\n%s", got, want)
			}
			t.Log("\n" + got)
			if strings.Count(got, "\n") != len(group.clients) {
				t.Errorf("not every client has an answer:\n%s", got)
			}
		})
	}
}

// ports are the two client ports of a server.
type ports struct{ plain, secure string }

// withTLS adds the TLS port to lines that configure TLS.
func withTLS(t *testing.T, lines []string) ([]string, string) {
	t.Helper()
	if !strings.Contains(strings.Join(lines, "\n"), "ssl.keyStore.location") {
		return lines, ""
	}
	free := must.Get(oracle.FreePorts(1))(t)
	return append([]string{fmt.Sprint("secureClientPort=", free[0])}, lines...), fmt.Sprint("127.0.0.1:", free[0])
}

func zooKeeper(t *testing.T, login string, lines []string) ports {
	t.Helper()
	lines, secure := withTLS(t, lines)
	s := oracle.Start(t, oracle.Options{Config: lines, JVM: []string{"-Djava.security.auth.login.config=" + login}})
	closeOff(t, s.Addr(), lines)
	return ports{s.Addr(), secure}
}

func zkgo(t *testing.T, login string, lines []string) ports {
	t.Helper()
	lines, secure := withTLS(t, lines)
	s := process.Start(t, t.TempDir(), sets(append(lines, "java.security.auth.login.config="+login)...)...)
	closeOff(t, s.Addr, lines)
	return ports{s.Addr, secure}
}

// closeOff creates a znode that only its owner and super users may read.
func closeOff(t *testing.T, addr string, lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := must.Get(client.Connect(ctx, addr, client.WithSASL(client.DigestMD5("bob", "secret"))))(t)
	defer c.Close()
	owner := client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "digest", ID: "nobody:knows"}}
	if _, err := c.Create(ctx, "/closed", nil, client.WithACL(owner)); err != nil {
		t.Fatalf("%v: %v", lines, err)
	}
}

// compile compiles a Java program and returns the command that runs it.
func compile(t *testing.T, class string) []string {
	t.Helper()
	jars := must.Get(oracle.Dir())(t)
	classes := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "javac", "-nowarn", "-d", classes, "-cp", jars+"/*", filepath.Join("clients", class+".java")).CombinedOutput()
	if err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return []string{"java", "-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dzookeeper.root.level=OFF",
		"-cp", strings.Join([]string{classes, jars, jars + "/*"}, string(os.PathListSeparator)), class}
}

// run makes the Java program connect as all clients and returns its output.
func run(t *testing.T, java []string, login string, clients []someClient, p ports) string {
	t.Helper()
	// Without the second property, Java's client has had no DIGEST-MD5 since 3.9.
	args := append([]string{"-Djava.security.auth.login.config=" + login, "-Dzookeeper.fips-mode=false"}, java[1:]...)
	for _, c := range clients {
		addr := p.plain
		if c.secure {
			addr = p.secure
		}
		args = append(args, c.name+"|"+addr+"|"+c.settings)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, java[0], args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	return string(out)
}

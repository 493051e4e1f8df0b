package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		_ = os.RemoveAll(dir) // in the temp dir
	}
	os.Exit(code)
}

// root is the path of the repository.
const root = "../../../.."

// The programs that the tests run are built once, as the Dockerfile does: without C libraries.
var (
	buildDir  = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "zkgo-kubernetes-test-") })
	buildZkgo = sync.OnceValues(func() (string, error) {
		return build("zkgo", func(out string) *exec.Cmd {
			return exec.Command("make", "-C", root, "binary", "OUT="+out, "VERSION=1.0.0-test")
		})
	})
	buildRclone = sync.OnceValues(func() (string, error) {
		return build("rclone", func(out string) *exec.Cmd { return exec.Command("go", "build", "-C", "rclone", "-o", out, ".") })
	})
)

func build(name string, to func(out string) *exec.Cmd) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, name)
	cmd := to(out)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return out, nil
}

func program(t *testing.T) string { t.Helper(); return must.Get(buildZkgo())(t) }

func rclone(t *testing.T) string { t.Helper(); return must.Get(buildRclone())(t) }

// selfSigned returns a certificate for an address, and its PEM text.
func selfSigned(t *testing.T, addr netip.Addr) (tls.Certificate, []byte) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{addr.AsSlice()}, IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// voterSet is the name of the StatefulSet, and domain is the name of its headless service.
const (
	voterSet = "zk-zookeeper"
	domain   = "zk-zookeeper-headless.test.svc.cluster.local"
)

// pods returns the names of the first pods.
func pods(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(voterSet, "-", i))
	}
	return names
}

// voters returns the members that these pods are.
func voters(n int) (members []string) {
	for i := range n {
		members = append(members, fmt.Sprintf("%d zk-zookeeper-%d", i+1, i))
	}
	return members
}

// TestScale scales an ensemble up and down while a client has a session. New servers join without a
// command, removed ones leave before they stop, and restarts change no membership.
func TestScale(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "pod")
	c.scale(voterSet, 3)
	// The name of the last pod resolves late: the others wait for it.
	c.start(false, "zk-zookeeper-0", "zk-zookeeper-1")
	c.start(true, "zk-zookeeper-2")
	wait.Eventually(t, "zk-0 is alive", func() bool { return c.probe("zk-zookeeper-0", c.pod.Live) == http.StatusOK })
	if got := c.probe("zk-zookeeper-0", c.pod.Ready); got == http.StatusOK {
		t.Error("zk-0 is ready without zk-2")
	}
	c.dns.set("zk-zookeeper-2."+domain, netip.MustParseAddr(c.pods["zk-zookeeper-2"].addr))
	c.ready(pods(3)...)
	z := c.connect(pods(3)...)
	c.members(z, voters(3)...)
	ctx := t.Context()
	must.Get(z.Create(ctx, "/kept", []byte("data"), client.Ephemeral))(t)
	session := z.Session().ID

	c.scale(voterSet, 5)
	c.start(false, "zk-zookeeper-3", "zk-zookeeper-4")
	c.ready("zk-zookeeper-3", "zk-zookeeper-4")
	c.members(z, voters(5)...)

	// One pod at a time, from the last to the first, each with a new address.
	for i := 4; i >= 0; i-- {
		name := fmt.Sprint(voterSet, "-", i)
		c.stop(name)
		c.start(false, name)
		c.ready(pods(5)...)
		c.members(z, voters(5)...)
	}

	// A lost volume.
	c.pods["zk-zookeeper-1"].Kill()
	c.wipe("zk-zookeeper-1")
	c.start(false, "zk-zookeeper-1")
	c.ready(pods(5)...)
	c.members(z, voters(5)...)

	// Two leave at once.
	c.scale(voterSet, 3)
	c.stop("zk-zookeeper-3", "zk-zookeeper-4")
	c.ended(voterSet)
	c.members(z, voters(3)...)
	c.ready(pods(3)...)

	// They return with the data that they had when they left.
	c.scale(voterSet, 5)
	c.start(false, "zk-zookeeper-3", "zk-zookeeper-4")
	c.ready("zk-zookeeper-3", "zk-zookeeper-4")
	c.members(z, voters(5)...)

	// A pod that is scaled away dies before it can leave.
	c.scale(voterSet, 3)
	c.pods["zk-zookeeper-3"].Kill()
	c.stop("zk-zookeeper-4")
	c.ended(voterSet)
	c.members(z, voters(3)...)
	if data, _, err := z.Get(ctx, "/kept"); err != nil || string(data) != "data" || z.Session().ID != session {
		t.Errorf("the session %x has become %x, and its znode %q, %v", session, z.Session().ID, data, err)
	}
}

// TestScaleToNothing: zero replicas stop the ensemble, and remove no member.
func TestScaleToNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "pod")
	c.scale(voterSet, 3)
	c.start(false, pods(3)...)
	c.ready(pods(3)...)
	z := c.connect(pods(3)...)
	must.Get(z.Create(t.Context(), "/kept", nil))(t)
	z.Close()
	c.scale(voterSet, 0)
	c.stop(pods(3)...)
	c.ended(voterSet)
	c.scale(voterSet, 3)
	c.start(false, pods(3)...)
	c.ready(pods(3)...)
	z = c.connect("zk-zookeeper-1")
	c.members(z, voters(3)...)
	if _, found, err := z.Exists(t.Context(), "/kept"); err != nil || !found {
		t.Errorf("/kept is there: %v, %v", found, err)
	}
}

// TestFromOneToThree: while the only member is away, new servers must not form another ensemble,
// although they are a majority of the new list.
func TestFromOneToThree(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "pod")
	c.scale(voterSet, 1)
	c.start(false, "zk-zookeeper-0")
	c.ready("zk-zookeeper-0")
	z := c.connect("zk-zookeeper-0")
	must.Get(z.Create(t.Context(), "/kept", nil))(t)
	z.Close()
	c.stop("zk-zookeeper-0")
	c.scale(voterSet, 3)
	c.start(false, "zk-zookeeper-1", "zk-zookeeper-2")
	for _, name := range []string{"zk-zookeeper-1", "zk-zookeeper-2"} {
		wait.Eventually(t, name+" is alive", func() bool { return c.probe(name, c.pod.Live) == http.StatusOK })
	}
	formed := wait.For(4*time.Second, "an ensemble of the two", func() (bool, error) {
		return c.probe("zk-zookeeper-1", c.pod.Ready) == http.StatusOK || c.probe("zk-zookeeper-2", c.pod.Ready) == http.StatusOK, nil
	})
	if formed == nil {
		t.Fatal("two empty servers have formed an ensemble without the data of the third")
	}
	c.start(false, "zk-zookeeper-0")
	c.ready(pods(3)...)
	z = c.connect("zk-zookeeper-2")
	c.members(z, voters(3)...)
	if _, found, err := z.Exists(t.Context(), "/kept"); err != nil || !found {
		t.Errorf("/kept is there: %v, %v", found, err)
	}
	// And back: the last one stays.
	c.scale(voterSet, 1)
	c.stop("zk-zookeeper-1", "zk-zookeeper-2")
	c.ended(voterSet)
	z = c.connect("zk-zookeeper-0")
	c.members(z, voters(1)...)
}

// TestObservers: observers are a separate StatefulSet. A server with a wrong password doesn't join.
func TestObservers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "pod")
	c.scale(voterSet, 1)
	c.scale(voterSet+"-observer", 1)
	c.start(false, "zk-zookeeper-0", "zk-zookeeper-observer-0")
	c.ready("zk-zookeeper-0", "zk-zookeeper-observer-0")
	z := c.connect("zk-zookeeper-0")
	c.members(z, "1 zk-zookeeper-0", "101 zk-zookeeper-observer-0 observes")

	c.pods["zk-zookeeper-1"] = &pod{root: c.image("zk-zookeeper-1")}
	must.Do(t, os.WriteFile(filepath.Join(c.pods["zk-zookeeper-1"].root, "secrets/super/super-password"), []byte("wrong"), 0o644))
	c.scale(voterSet, 2)
	c.start(false, "zk-zookeeper-1")
	wait.Eventually(t, "zk-zookeeper-1 says that it may not join", func() bool {
		return strings.Contains(c.pods["zk-zookeeper-1"].Output(), "this server cannot join the ensemble yet")
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	if config := must.Get(z.Config(ctx))(t); strings.Contains(config.Text, "server.2=") {
		t.Errorf("a server with a wrong password has joined:\n%s", config.Text)
	}
	c.pods["zk-zookeeper-1"].Kill()
	c.scale(voterSet, 1)
	c.ended(voterSet)

	c.scale(voterSet+"-observer", 0)
	c.stop("zk-zookeeper-observer-0")
	c.members(z, "1 zk-zookeeper-0")
}

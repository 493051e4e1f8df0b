package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// imageUser is the user in the image.
const imageUser = 1000

// set is the API's answer about a StatefulSet.
type set struct{ replicas, existing int }

// cluster is the part of Kubernetes that the servers see.
type cluster struct {
	t        *testing.T
	net      *netns.Net
	operator *netns.Host
	dns      resolver
	api      string // host of the API
	ca       []byte
	dir      string
	pod      chartPod
	issuer   *authority // of the pods' certificates
	pods     map[string]*pod
	made     int // hosts

	mu   sync.Mutex
	sets map[string]set
}

// pod is a server. Its directory outlives its process, like a volume.
type pod struct {
	*process.Proc
	root string
	addr string
}

// chartPod is what runs in a pod of the chart. The tests in chart compare the file with the
// chart.
type chartPod struct {
	Config, Ready, Live string
	Scheme              string // of the probes; empty: HTTP
	Args                []string
	Env                 map[string]string
	Certificates        map[string][]string // names by Secret
}

// newCluster starts the resolver and the API. A file defines the pods.
func newCluster(t *testing.T, recorded string) *cluster {
	t.Helper()
	process.Needed(t)
	netns.Needed(t)
	c := &cluster{t: t, net: netns.New(1), dir: t.TempDir(), pods: map[string]*pod{}, sets: map[string]set{}}
	read(t, recorded, &c.pod)
	if len(c.pod.Certificates) > 0 {
		c.issuer = newAuthority(t)
	}
	c.pod.Env["ZOO_TICK_TIME"] = "1000" // to wait less
	t.Cleanup(func() { _ = c.net.Close() })
	c.dns.names = map[string]netip.Addr{}
	c.operator = must.Get(c.net.Host("control-plane"))(t)
	c.api = c.operator.Addr().String()
	var packets net.PacketConn
	must.Do(t, c.operator.Do(func() (err error) {
		packets, err = net.ListenPacket("udp4", c.api+":53")
		return err
	}))
	t.Cleanup(func() { _ = packets.Close() })
	go c.dns.serve(packets)
	server := httptest.NewUnstartedServer(http.HandlerFunc(c.answer))
	server.Listener = must.Get(c.operator.Listen(c.api + ":443"))(t)
	certificate, ca := selfSigned(t, c.operator.Addr())
	server.TLS, c.ca = &tls.Config{Certificates: []tls.Certificate{certificate}}, ca
	server.StartTLS()
	t.Cleanup(server.Close)
	return c
}

// read reads a record of the chart's tests.
func read(t *testing.T, name string, v any) {
	t.Helper()
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("chart/testdata/pod/"+name+".json"))(t), v))
}

// answer is the API: the size of a StatefulSet, for the pods' service account.
func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	name, found := strings.CutPrefix(r.URL.Path, "/apis/apps/v1/namespaces/test/statefulsets/")
	c.mu.Lock()
	s, ok := c.sets[name]
	c.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer token":
		http.Error(w, "no token", http.StatusUnauthorized)
	case r.Method != http.MethodGet || !found:
		http.Error(w, "not allowed", http.StatusForbidden)
	case !ok:
		http.Error(w, "not found", http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": s.replicas}, "status": map[string]any{"replicas": s.existing},
		})
	}
}

// scale sets how many pods there should be. As in Kubernetes, the pods that are too many exist
// until they have ended.
func (c *cluster) scale(name string, replicas int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets[name] = set{replicas, max(c.sets[name].existing, replicas)}
}

// ended tells the API that the pods that are too many have ended.
func (c *cluster) ended(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets[name] = set{c.sets[name].replicas, c.sets[name].replicas}
}

// start starts pods, each with a new address. With late, their names don't resolve yet.
func (c *cluster) start(late bool, names ...string) {
	c.t.Helper()
	for _, name := range names {
		p := c.pods[name]
		if p == nil {
			p = &pod{root: c.image(name)}
			c.pods[name] = p
		}
		c.made++
		host := must.Get(c.net.Host(fmt.Sprint("host-", c.made)))(c.t)
		p.addr = host.Addr().String()
		if !late {
			c.dns.set(name+"."+domain, host.Addr())
		}
		must.Do(c.t, os.RemoveAll(filepath.Join(p.root, "conf")))
		c.own(p.root, "conf")
		args := []string{"-u", "sh", "-c", `hostname "$1"; shift; exec env -i "$@"`, "sh", name,
			"KUBERNETES_SERVICE_HOST=" + c.api, "KUBERNETES_SERVICE_PORT=443"}
		for _, key := range slices.Sorted(maps.Keys(c.pod.Env)) {
			args = append(args, key+"="+c.pod.Env[key])
		}
		args = append(args, "/usr/sbin/chroot", fmt.Sprintf("--userspec=%d:%d", imageUser, imageUser), p.root, "/zkgo")
		proc, err := process.LaunchIn(func() (bool, error) { return true, host.Enter() }, exec.Command("unshare", append(args, c.pod.Args...)...), "")
		if err != nil {
			c.t.Fatal(err)
		}
		p.Proc = proc
		c.t.Cleanup(func() {
			proc.Kill()
			if c.t.Failed() {
				c.t.Logf("%s:\n%s", name, proc.Output())
			}
		})
	}
}

// image lays out a pod's root directory: the program, the volumes, and what Kubernetes mounts.
func (c *cluster) image(name string) string {
	c.t.Helper()
	root := filepath.Join(c.dir, name)
	for _, dir := range []string{"etc", "config", "secrets/super", "var/run/secrets/kubernetes.io/serviceaccount"} {
		must.Do(c.t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	must.Do(c.t, os.Link(program(c.t), filepath.Join(root, "zkgo")))
	c.own(root, "bitnami/zookeeper", "tmp")
	for path, text := range map[string]string{
		"etc/resolv.conf": "nameserver " + c.api + "\noptions timeout:1\n", "secrets/super/super-password": "secret", "config/zoo.cfg": c.pod.Config,
		"var/run/secrets/kubernetes.io/serviceaccount/token": "token", "var/run/secrets/kubernetes.io/serviceaccount/namespace": "test",
		"var/run/secrets/kubernetes.io/serviceaccount/ca.crt": string(c.ca),
	} {
		must.Do(c.t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
	}
	c.certify(root, c.issuer, "client", "quorum")
	return root
}

// certify writes what cert-manager puts into the Secrets with the certificates of ports.
func (c *cluster) certify(root string, issuer *authority, ports ...string) {
	c.t.Helper()
	for _, port := range ports {
		names := c.pod.Certificates[voterSet+"-"+port+"-crt"]
		if len(names) == 0 {
			continue
		}
		dir := filepath.Join(root, "certs", port)
		must.Do(c.t, os.MkdirAll(dir, 0o755))
		for name, text := range issuer.issue(c.t, names) {
			must.Do(c.t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
		}
	}
}

// own makes directories of the image's user.
func (c *cluster) own(root string, dirs ...string) {
	c.t.Helper()
	for _, dir := range dirs {
		must.Do(c.t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		must.Do(c.t, os.Chown(filepath.Join(root, dir), imageUser, imageUser))
	}
}

// wipe replaces a pod's volume with an empty one.
func (c *cluster) wipe(names ...string) {
	c.t.Helper()
	for _, name := range names {
		must.Do(c.t, os.RemoveAll(filepath.Join(c.pods[name].root, "bitnami/zookeeper")))
		c.own(c.pods[name].root, "bitnami/zookeeper")
	}
}

// stop ends pods at the same time, like Kubernetes, and waits for them.
func (c *cluster) stop(names ...string) {
	c.t.Helper()
	for _, name := range names {
		must.Do(c.t, c.pods[name].Signal(syscall.SIGTERM))
	}
	for _, name := range names {
		state, err := c.pods[name].Exit(process.Patience)
		if err != nil || !state.Success() {
			c.t.Fatalf("%s on SIGTERM: %v %v", name, state, err)
		}
	}
}

// probe returns the status of a path of a pod's admin port, 0 if it doesn't answer.
func (c *cluster) probe(name, path string) int {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
	defer cancel()
	// As the kubelet, it checks no certificate.
	h := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return c.operator.Dial(ctx, addr) }}}
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, strings.ToLower(cmp.Or(c.pod.Scheme, "http"))+"://"+c.pods[name].addr+":8080"+path, nil))(c.t)
	res, err := h.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// ready waits until pods are ready.
func (c *cluster) ready(names ...string) {
	c.t.Helper()
	for _, name := range names {
		wait.Eventually(c.t, name+" is ready", func() bool {
			if !c.pods[name].Running() {
				c.t.Fatalf("%s has ended", name)
			}
			return c.probe(name, c.pod.Ready) == http.StatusOK
		})
	}
}

// connect returns a client of pods.
func (c *cluster) connect(names ...string) *client.Client {
	c.t.Helper()
	var servers []string
	for _, name := range names {
		servers = append(servers, name+"."+domain+":2181")
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), process.Patience)
	defer cancel()
	z := must.Get(client.Connect(ctx, strings.Join(servers, ","), client.WithSessionTimeout(30*time.Second),
		client.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) { return c.operator.Dial(ctx, addr) }),
		client.WithResolver(func(_ context.Context, host string) ([]string, error) {
			addr, ok := c.dns.find(host)
			if !ok {
				return nil, &net.DNSError{Name: host, IsNotFound: true}
			}
			return []string{addr.String()}, nil
		})))(c.t)
	c.t.Cleanup(func() { z.Close() })
	return z
}

// members waits until the ensemble consists of these servers, in the order of their ids.
func (c *cluster) members(z *client.Client, want ...string) {
	c.t.Helper()
	var got []string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the members are %q", got)
		}
	}()
	wait.Eventually(c.t, fmt.Sprintf("the members are %q", want), func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
		defer cancel()
		config, err := z.Config(ctx)
		if err != nil {
			return false
		}
		got = nil
		for line := range strings.Lines(config.Text) {
			if id, rest, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(id, "server.") {
				host, _, _ := strings.Cut(rest, ".")
				if strings.Contains(rest, ":observer") {
					host += " observes"
				}
				got = append(got, strings.TrimPrefix(id, "server.")+" "+host)
			}
		}
		return slices.Equal(got, want)
	})
}

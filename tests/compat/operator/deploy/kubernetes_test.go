//go:build linux

package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// pods are the parts of the manifests' stateful set that the test needs.
type pods struct {
	replicas int
	args     []string
	env      map[string]string
	ready    string // path of the probe
	live     string
}

// manifests builds the manifests, which checks them, and returns what to run.
func manifests(t *testing.T) pods {
	t.Helper()
	cmd := command(t, "go", "run", "-C", "manifests", ".", "../../../../../deploy/kubernetes")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	type probe struct{ HTTPGet struct{ Path string } }
	var all struct {
		ConfigMaps   []struct{ Data map[string]string }
		StatefulSets []struct {
			Spec struct {
				Replicas int
				Template struct {
					Spec struct {
						Containers []struct {
							Args                          []string
							Env                           []struct{ Name, Value string }
							ReadinessProbe, LivenessProbe probe
						}
					}
				}
			}
		}
	}
	must.Do(t, json.Unmarshal(out, &all))
	spec := all.StatefulSets[0].Spec
	c := spec.Template.Spec.Containers[0]
	p := pods{replicas: spec.Replicas, args: c.Args, env: all.ConfigMaps[0].Data, ready: c.ReadinessProbe.HTTPGet.Path, live: c.LivenessProbe.HTTPGet.Path}
	for _, e := range c.Env {
		p.env[e.Name] = e.Value
	}
	return p
}

// TestKubernetes runs the pods of the manifests without Kubernetes: each in its own empty
// root directory, with the host name that a stateful set assigns, and with the arguments and
// variables of the manifests. We replace only host names and ports with this machine's.
func TestKubernetes(t *testing.T) {
	process.Needed(t)
	rooted(t)
	p := manifests(t)
	type pod struct {
		*process.Proc
		client, admin string
	}
	var list []string
	all := make([]pod, p.replicas)
	adminPorts := make([]int, p.replicas)
	for i := range all {
		port := freePort(t)
		adminPorts[i] = freePort(t)
		all[i].client, all[i].admin = local(port), fmt.Sprintf("http://127.0.0.1:%d", adminPorts[i])
		name := fmt.Sprintf("server.%d=zkgo-%d.zkgo-servers:2888:3888;2181", i+1, i)
		if !strings.Contains(p.env["ZOO_SERVERS"], name) {
			t.Fatalf("ZOO_SERVERS lacks %s: %s", name, p.env["ZOO_SERVERS"])
		}
		list = append(list, fmt.Sprintf("server.%d=127.0.0.1:%d:%d;127.0.0.1:%d", i+1, freePort(t), freePort(t), port))
	}
	if got := len(strings.Fields(p.env["ZOO_SERVERS"])); got != p.replicas {
		t.Fatalf("%d servers in ZOO_SERVERS, %d replicas", got, p.replicas)
	}
	for i := range all {
		env := maps.Clone(p.env)
		env["ZOO_SERVERS"] = strings.Join(list, " ")
		env["ZOO_CFG_EXTRA"] = strings.ReplaceAll(env["ZOO_CFG_EXTRA"], "httpPort=7000", fmt.Sprint("httpPort=", freePort(t))) +
			fmt.Sprintf(" admin.serverPort=%d admin.serverAddress=127.0.0.1", adminPorts[i])
		args := []string{"-u", "sh", "-c", `hostname "$1"; shift; exec env -i "$@"`, "sh", fmt.Sprint("zkgo-", i)}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			args = append(args, name+"="+env[name])
		}
		args = append(args, "/usr/sbin/chroot", "--userspec=1000:1000", image(t), "/zkgo")
		all[i].Proc = run(t, exec.Command("unshare", append(args, p.args...)...))
	}
	probe := func(i int, path string) int {
		r, err := http.Get(all[i].admin + path)
		if err != nil {
			return 0
		}
		r.Body.Close()
		return r.StatusCode
	}
	ready := func(i int) bool { return probe(i, p.ready) == http.StatusOK && probe(i, p.live) == http.StatusOK }
	lead := -1
	for i := range all {
		wait.Eventually(t, fmt.Sprintf("pod %d is ready", i), func() bool {
			if !all[i].Running() {
				t.Fatalf("pod %d has ended", i)
			}
			return ready(i)
		})
		if serves(t, all[i].client) == "leader" {
			lead = i
		}
	}
	if lead < 0 {
		t.Fatal("nobody leads")
	}
	// As when the pod is moved: it hands over and ends, and the others stay ready.
	if err := all[lead].Stop(syscall.SIGTERM); err != nil {
		t.Errorf("pod %d on SIGTERM: %v", lead, err)
	}
	next := (lead + 1) % p.replicas
	wait.Eventually(t, "another one leads", func() bool {
		return serves(t, all[next].client) == "leader" || serves(t, all[(next+1)%p.replicas].client) == "leader"
	})
	// A single server is alive but not ready. Kubernetes should not restart it, because
	// that would not help.
	if err := all[next].Stop(syscall.SIGTERM); err != nil {
		t.Errorf("pod %d on SIGTERM: %v", next, err)
	}
	last := 3 - lead - next
	wait.Eventually(t, "the last one is not ready", func() bool { return probe(last, p.ready) == http.StatusServiceUnavailable })
	if got := probe(last, p.live); got != http.StatusOK {
		t.Errorf("without a quorum %s says %d", p.live, got)
	}
}

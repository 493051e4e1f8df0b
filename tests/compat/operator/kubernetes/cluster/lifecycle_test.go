package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestDefaults installs the chart as it is.
func TestDefaults(t *testing.T) {
	n := newNamespace(t, "defaults")
	n.helm("", "--wait", "--timeout=5m")
	n.await("zk-zookeeper", 1)
	c := n.connect()
	must.Get(c.Create(context.Background(), "/a", nil))(t)
	// What NOTES.txt shows.
	if out := n.kubectl("exec", "zk-zookeeper-0", "--", "zkgo", "cli", "-server", "localhost:2181", "config"); !strings.Contains(out, "server.1=zk-zookeeper-0.") {
		t.Errorf("zkgo cli config prints %s", out)
	}
	if got := n.field("pod/zk-zookeeper-0", ".status.containerStatuses[0].restartCount"); got != "0" {
		t.Errorf("the server was restarted %s times", got)
	}
	// An upgrade without changes keeps the pod and the generated password.
	uid, password := n.field("pod/zk-zookeeper-0", ".metadata.uid"), n.field("secret/zk-zookeeper-super", ".data.super-password")
	n.helm("", "--wait")
	n.await("zk-zookeeper", 1)
	if n.field("pod/zk-zookeeper-0", ".metadata.uid") != uid {
		t.Error("an upgrade without changes replaced the pod")
	}
	if n.field("secret/zk-zookeeper-super", ".data.super-password") != password {
		t.Error("an upgrade changed the password of super")
	}
	must.Get(tool("helm", "-n", n.name, "uninstall", "zk", "--wait", "--timeout=3m"))(t)
	must.Do(t, wait.For(patience, "helm uninstall leaves nothing but the claim", func() (bool, error) {
		<-time.After(200 * time.Millisecond)
		out := n.kubectl("get", "all,secret,configmap,networkpolicy,pdb,role,rolebinding,serviceaccount", "-l", "app.kubernetes.io/instance=zk", "-o", "name")
		return strings.TrimSpace(out) == "", nil
	}))
	// The claim stays, and a new installation finds its data.
	n.helm("", "--wait", "--timeout=5m")
	n.await("zk-zookeeper", 1)
	c = n.connect()
	if _, found, err := c.Exists(context.Background(), "/a"); err != nil || !found {
		t.Errorf("after uninstall and install, the znode is there: %v, %v", found, err)
	}
}

// TestReplacedPods updates an ensemble, and deletes pods and volumes, while a client writes all
// the time.
func TestReplacedPods(t *testing.T) {
	n := newNamespace(t, "pods")
	const set = "zk-zookeeper"
	n.helm("replicaCount: 3", small...)
	n.await(set, 3)
	c := n.connect()
	n.members(c, voters(3)...)

	w, watched := n.write(c), n.oneAtATime()
	n.helm("{replicaCount: 3, podAnnotations: {changed: \"1\"}}", small...)
	n.await(set, 3)
	watched()
	w.check("rolling update")
	n.members(c, voters(3)...)

	w, watched = n.write(c), n.oneAtATime()
	n.helm("{replicaCount: 3, podAnnotations: {changed: \"1\"}, tickTime: 1000, configuration: \"jute.maxbuffer=2000000\"}", small...)
	n.await(set, 3)
	watched()
	w.check("helm upgrade with another zoo.cfg")

	w = n.write(c)
	for _, p := range []string{"0", "1", "2"} {
		n.kubectl("delete", "pod", set+"-"+p, "--wait=true")
		n.await(set, 3)
	}
	w.check("each pod deleted")

	w = n.write(c)
	n.kubectl("delete", "pod", set+"-1", "--grace-period=0", "--force")
	n.await(set, 3)
	w.check("a pod killed")

	w = n.write(c)
	n.lose(set, 2)
	n.await(set, 3)
	n.lose(set, 0)
	n.await(set, 3)
	w.check("two volumes lost, one after the other")
	n.members(c, voters(3)...)

}

// TestScale scales an ensemble up and down, while a client writes all the time, and stops it.
func TestScale(t *testing.T) {
	n := newNamespace(t, "scale")
	const set = "zk-zookeeper"
	n.helm("replicaCount: 3", small...)
	n.await(set, 3)
	c := n.connect()
	for _, replicas := range []int{5, 3, 1, 3, 1, 5, 3} {
		w := n.write(c)
		n.kubectl("scale", "statefulset", set, "--replicas", string(rune('0'+replicas)))
		n.await(set, replicas)
		n.members(c, voters(replicas)...)
		w.check("scaled to " + string(rune('0'+replicas)))
	}

	n.budget(set)

	must.Get(c.Create(context.Background(), "/kept", nil))(t)
	n.kubectl("scale", "statefulset", set, "--replicas", "0")
	n.await(set, 0)
	n.kubectl("scale", "statefulset", set, "--replicas", "3")
	n.await(set, 3)
	c = n.connect()
	n.members(c, voters(3)...)
	if _, found, err := c.Exists(context.Background(), "/kept"); err != nil || !found {
		t.Errorf("after zero replicas, the znode is there: %v, %v", found, err)
	}
}

// lose deletes a pod and its claim, as if the volume broke.
func (n *namespace) lose(set string, ordinal int) {
	n.t.Helper()
	pod := set + "-" + string(rune('0'+ordinal))
	uid := n.field("pvc/data-"+pod, ".metadata.uid")
	n.kubectl("delete", "pvc", "data-"+pod, "--wait=false")
	n.kubectl("delete", "pod", pod, "--wait=true")
	must.Do(n.t, wait.For(patience, "the pod gets another volume", func() (bool, error) {
		<-time.After(200 * time.Millisecond)
		if now := n.field("pvc/data-"+pod, ".metadata.uid"); now == uid || now == "" {
			// The StatefulSet's controller may have made the pod before the claim was gone.
			if n.field("pod/"+pod, ".status.phase") == "Pending" {
				_, _ = tool("kubectl", "-n", n.name, "delete", "pod", pod, "--wait=true", "--ignore-not-found")
			}
			return false, nil
		}
		return true, nil
	}))
}

// budget checks that only one pod can be evicted at a time.
func (n *namespace) budget(set string) {
	n.t.Helper()
	evict := func(pod string) error {
		_, err := with(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"`+pod+`","namespace":"`+n.name+`"}}`, "kubectl", "create", "--raw", "/api/v1/namespaces/"+n.name+"/pods/"+pod+"/eviction", "-f", "-")
		return err
	}
	if err := evict(set + "-2"); err != nil {
		n.t.Errorf("the first eviction: %v", err)
	}
	if err := evict(set + "-1"); err == nil || !strings.Contains(err.Error(), "disruption budget") {
		n.t.Errorf("the second eviction, while a pod is missing: %v", err)
	}
	n.await(set, 3)
}

// TestObservers scales observers and voters.
func TestObservers(t *testing.T) {
	n := newNamespace(t, "observers")
	n.helm("{replicaCount: 3, observers: {enabled: true, replicaCount: 2, resources: {requests: {cpu: 20m}}}}", small...)
	n.await("zk-zookeeper", 3)
	n.await("zk-zookeeper-observer", 2)
	c := n.connect()
	n.members(c, 1, 2, 3, 101, 102)
	o := n.connectTo(n.address("zk-zookeeper-observer", "tcp-client"))
	w := n.write(o)
	n.kubectl("scale", "statefulset", "zk-zookeeper-observer", "--replicas=1")
	n.await("zk-zookeeper-observer", 1)
	n.members(c, 1, 2, 3, 101)
	n.kubectl("scale", "statefulset", "zk-zookeeper", "--replicas=1")
	n.await("zk-zookeeper", 1)
	n.members(c, 1, 101)
	w.check("through an observer")
	n.kubectl("delete", "pod", "zk-zookeeper-observer-0")
	n.await("zk-zookeeper-observer", 1)
	n.members(c, 1, 101)
}

// TestAccepted offers the objects of all value files to the API server.
func TestAccepted(t *testing.T) {
	n := newNamespace(t, "accepted")
	for _, crd := range []string{"servicemonitors.monitoring.coreos.com/ServiceMonitor", "prometheusrules.monitoring.coreos.com/PrometheusRule", "certificates.cert-manager.io/Certificate"} {
		name, kind, _ := strings.Cut(crd, "/")
		plural, group, _ := strings.Cut(name, ".")
		n.apply(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` + name + `},
  spec: {group: ` + group + `, scope: Namespaced, names: {plural: ` + plural + `, singular: ` + strings.ToLower(kind) + `, kind: ` + kind + `},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
		must.Get(tool("kubectl", "wait", "--for=condition=Established", "crd/"+name))(t)
	}
	for _, name := range []string{"monitoring", "test"} { // in monitoring.yaml and custom.yaml
		must.Get(with(`{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`, "kubectl", "apply", "-f", "-"))(t)
	}
	files := must.Get(filepath.Glob("../chart/testdata/*.yaml"))(t)
	if len(files) < 20 {
		t.Fatalf("only %d value files", len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			values := must.Get(os.ReadFile(f))(t)
			objects, err := with(string(values), "helm", "template", "--validate", "zk", chart, "-n", n.name, "-f", "-") // for the version of the cluster
			must.Do(t, err)
			out, err := with(objects, "kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "-")
			must.Do(t, err)
			if strings.Count(out, "(server dry run)") < 8 {
				t.Errorf("only %s", out)
			}
		})
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const repository = "../../../../.."

const chartDir = repository + "/deploy/helm/zookeeper"

// file renders the chart with a value file.
func file(t *testing.T, name string) []object {
	t.Helper()
	values, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render(chartDir, release{"zk", "test"}, values)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return objects
}

// named returns the object of a type with a name.
func named[T any](t *testing.T, objects []object, name string) *T {
	t.Helper()
	for _, o := range objects {
		if typed, ok := o.typed.(*T); ok && o.name == name {
			return typed
		}
	}
	t.Fatalf("there is no %T %s", *new(T), name)
	return nil
}

// TestEveryValueFile renders all value files. Rendering checks every object strictly.
func TestEveryValueFile(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("only %d value files, %v", len(files), err)
	}
	for _, f := range files {
		objects := file(t, strings.TrimSuffix(filepath.Base(f), ".yaml"))
		if len(objects) < 8 {
			t.Errorf("%s: only %d objects", f, len(objects))
		}
	}
}

// TestLint runs what "helm lint" runs.
func TestLint(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		values, err := chartutil.ReadValues(text)
		if err != nil {
			t.Fatal(err)
		}
		version := chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}
		for _, m := range lint.AllWithKubeVersion(chartDir, values, "test", &version).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", f, m)
			}
		}
	}
}

// TestWrongValues: a mistake in the values should be an error that names the value.
func TestWrongValues(t *testing.T) {
	for values, want := range map[string]string{
		`replicaCount: three`:                                                             "replicaCount",
		`replicaCount: -1`:                                                                "replicaCount",
		`persistence: {size: many}`:                                                       "size",
		`persistence: {enabled: "yes"}`:                                                   "enabled",
		`livenessProbe: {enable: true}`:                                                   "enable",
		`backup: {enabled: true, schedul: x}`:                                             "schedul",
		`backup: {activeDeadlineSeconds: -1}`:                                             "activeDeadlineSeconds",
		`tls: {client: {auth: maybe}}`:                                                    "auth",
		`tls: {client: {enabled: true}}`:                                                  "tls.client.existingSecret",
		`tls: {quorum: {enabled: true, certManager: {enabled: true}}}`:                    "issuerRef.name",
		`auth: {client: {enabled: true}}`:                                                 "auth.client.serverUsers",
		`auth: {quorum: {enabled: true, serverUsers: a}}`:                                 "learnerUser",
		`podManagementPolicy: OrderedReady`:                                               "podManagementPolicy",
		`{replicaCount: 3, persistence: {existingClaim: a}}`:                              "persistence.existingClaim",
		`{minServerId: 100, replicaCount: 3}`:                                             "observers.minServerId",
		`pdb: {minAvailable: 1, maxUnavailable: 1}`:                                       "exclude",
		`backup: {enabled: true, s3: {enabled: true}}`:                                    "existingSecret",
		`service: {type: Loadbalancer}`:                                                   "type",
		`service: {headless: {servicenameoverride: a}}`:                                   "servicenameoverride",
		`networkPolicy: {allowexternal: false}`:                                           "allowexternal",
		`auth: {enabled: true}`:                                                           "enabled",
		`tls: {clients: {enabled: true}}`:                                                 "clients",
		`persistence: {storageclass: fast}`:                                               "storageclass",
		`metrics: {servicemonitor: {enabled: true}}`:                                      "servicemonitor",
		`podAntiAffinityPreset: strong`:                                                   "podAntiAffinityPreset",
		"fullnameOverride: " + strings.Repeat("a", 53):                                    "fullnameOverride",
		"{observers: {enabled: true}, fullnameOverride: " + strings.Repeat("a", 44) + "}": "fullnameOverride",
	} {
		if _, err := render(chartDir, release{"zk", "test"}, []byte(values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error does not name %s: %v", values, want, err)
		}
	}
}

// TestNames: the names of services and pods are the same as in Bitnami's chart, alone and as the
// dependency zookeeper of another chart.
func TestNames(t *testing.T) {
	for _, c := range []struct{ release, values, name string }{
		{"my", "", "my-zookeeper"},
		{"zookeeper", "", "zookeeper"},
		{"my", "nameOverride: zk", "my-zk"},
		{"my", "fullnameOverride: here", "here"},
	} {
		objects, err := render(chartDir, release{c.release, "test"}, []byte(c.values))
		if err != nil {
			t.Fatal(err)
		}
		set := named[appsv1.StatefulSet](t, objects, c.name)
		if set.Spec.ServiceName != c.name+"-headless" {
			t.Errorf("%v: the headless service is %s", c, set.Spec.ServiceName)
		}
		if got := named[corev1.Service](t, objects, c.name).Spec.Ports[0].Port; got != 2181 {
			t.Errorf("%v: port %d", c, got)
		}
		want := map[string]string{"app.kubernetes.io/instance": c.release, "app.kubernetes.io/name": "zookeeper", "app.kubernetes.io/component": "zookeeper"}
		if c.values == "nameOverride: zk" {
			want["app.kubernetes.io/name"] = "zk"
		}
		if got := set.Spec.Selector.MatchLabels; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v: the selector is %v", c, got)
		}
	}
}

// TestDependency embeds the chart like the charts of Pinot, SigNoz, NiFi, ClickHouse and Solr embed
// ZooKeeper: the parent changes only the repository and the image.
func TestDependency(t *testing.T) {
	for _, name := range []string{"pinot", "signoz", "nifi", "clickhouse", "solr"} {
		child, err := loader.Load(chartDir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		parent := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: name, Version: "1.0.0",
			Dependencies: []*chart.Dependency{{Name: "zookeeper", Version: "0.x.x", Condition: "zookeeper.enabled"}}}}
		parent.AddDependency(child)
		indented := "zookeeper:\n" + string(bytes.ReplaceAll(append([]byte("  "), text...), []byte("\n"), []byte("\n  ")))
		objects, err := renderChart(parent, release{"data", "platform"}, []byte(indented))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		service := named[corev1.Service](t, objects, "data-zookeeper")
		if service.Namespace != "platform" || service.Spec.Ports[0].Port != 2181 {
			t.Errorf("%s: %+v", name, service)
		}
		if got := named[appsv1.StatefulSet](t, objects, "data-zookeeper").Spec.Template.Spec.Containers[0].Image; name == "pinot" && got != "registry.example.org/zkgo:0.1.0" {
			t.Errorf("%s: the image is %s", name, got)
		}
	}
}

// TestImage: the values of other charts name ZooKeeper's image, and get ours.
func TestImage(t *testing.T) {
	for values, want := range map[string]string{
		``: "ghcr.io/zkgo/zkgo:0.1.0",
		`image: {registry: docker.io, repository: signoz/zookeeper, tag: 3.7.1}`:                                          "ghcr.io/zkgo/zkgo:0.1.0",
		`image: {registry: docker.io, repository: bitnamilegacy/zookeeper, tag: 3.9.3-debian-12-r22, digest: "sha256:0"}`: "ghcr.io/zkgo/zkgo:0.1.0",
		`{image: {repository: bitnami/zookeeper}, global: {imageRegistry: mirror.example.org}}`:                           "mirror.example.org/zkgo/zkgo:0.1.0",
		`image: {registry: registry.example.org, repository: zk/zookeeper, tag: 7}`:                                       "registry.example.org/zk/zookeeper:7",
		`image: {registry: "", repository: zkgo, digest: "sha256:0"}`:                                                     "zkgo@sha256:0",
	} {
		objects, err := render(chartDir, release{"zk", "test"}, []byte(values))
		if err != nil {
			t.Fatal(err)
		}
		if got := named[appsv1.StatefulSet](t, objects, "zk-zookeeper").Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("%s: the image is %s, not %s", values, got, want)
		}
	}
}

// TestRcloneImage: a global registry replaces the registry of rclone's image.
func TestRcloneImage(t *testing.T) {
	for values, want := range map[string]string{
		``: "docker.io/rclone/rclone:1.71",
		`global: {imageRegistry: "mirror.example.org"}`: "mirror.example.org/rclone/rclone:1.71",
	} {
		values += "\nbackup: {enabled: true, s3: {enabled: true, bucket: b, existingSecret: s}}"
		objects, err := render(chartDir, release{"zk", "test"}, []byte(values))
		if err != nil {
			t.Fatal(err)
		}
		pod := named[batchv1.CronJob](t, objects, "zk-zookeeper-backup").Spec.JobTemplate.Spec.Template.Spec
		containers := slices.Concat(pod.InitContainers, pod.Containers)
		if !slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Image == want }) {
			t.Errorf("%s: no container has the image %s", values, want)
		}
	}
}

// TestNoShell: the chart replaces probes and commands that need the shell of another image.
func TestNoShell(t *testing.T) {
	c := named[appsv1.StatefulSet](t, file(t, "signoz"), "zk-zookeeper").Spec.Template.Spec.Containers[0]
	for path, probe := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.Exec != nil || probe.HTTPGet.Path != path {
			t.Errorf("instead of SigNoz's: %+v", probe)
		}
	}
	if got := named[appsv1.StatefulSet](t, file(t, "bitnami"), "zk-zookeeper").Spec.Template.Spec.Containers[0].Command; len(got) != 0 {
		t.Errorf("the command is %q", got)
	}
	objects, err := render(chartDir, release{"zk", "test"}, []byte(`{command: [/zkgo, container], customLivenessProbe: {exec: {command: [/bin/zkServer.sh, status]}}, customReadinessProbe: {tcpSocket: {port: 2181}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c = named[appsv1.StatefulSet](t, objects, "zk-zookeeper").Spec.Template.Spec.Containers[0]
	if c.LivenessProbe.Exec == nil || c.ReadinessProbe.TCPSocket == nil || len(c.Command) != 2 {
		t.Errorf("%+v %+v %q", c.LivenessProbe, c.ReadinessProbe, c.Command)
	}
}

var rewrite = flag.Bool("rewrite", false, "write testdata/pod anew")

// TestPod compares the pods that the tests of real processes run with the chart's: servers,
// servers with the certificates of cert-manager, and backups.
func TestPod(t *testing.T) {
	for file, got := range map[string]any{"pod": server(t, "default"), "certmanager": server(t, "certmanager"), "backup": job(t, "backuptls"), "s3": job(t, "s3")} {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(got); err != nil {
			t.Fatal(err)
		}
		path := "testdata/pod/" + file + ".json"
		if *rewrite {
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		recorded, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text.Bytes(), recorded) {
			t.Errorf("%s is not the chart's pod, see -rewrite:\n%s", path, text.Bytes())
		}
	}
}

// server returns a server's command and files for a value file, without Kubernetes.
func server(t *testing.T, values string) any {
	t.Helper()
	objects := file(t, values)
	c := named[appsv1.StatefulSet](t, objects, "zk-zookeeper").Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	names := map[string][]string{}
	for _, certificate := range all[certmanager.Certificate](objects) {
		names[certificate.Name] = certificate.Spec.DNSNames
	}
	return struct {
		Config       string              `json:"config"`
		Args         []string            `json:"args"`
		Env          map[string]string   `json:"env"`
		Ready        string              `json:"ready"`
		Live         string              `json:"live"`
		Scheme       corev1.URIScheme    `json:"scheme,omitempty"`
		Certificates map[string][]string `json:"certificates,omitempty"`
	}{config(t, values), c.Args, env, c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Scheme, names}
}

// job returns the pod of a value file's backups.
func job(t *testing.T, values string) any {
	t.Helper()
	return named[batchv1.CronJob](t, file(t, values), "zk-zookeeper-backup").Spec.JobTemplate.Spec.Template.Spec
}

// TestPodSecurity: all pods fit into a namespace with the standard "restricted".
func TestPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f == "testdata/custom.yaml" {
			continue // its values have containers
		}
		objects := file(t, strings.TrimSuffix(filepath.Base(f), ".yaml"))
		var pods []corev1.PodTemplateSpec
		for _, set := range all[appsv1.StatefulSet](objects) {
			pods = append(pods, set.Spec.Template)
		}
		for _, job := range all[batchv1.CronJob](objects) {
			pods = append(pods, job.Spec.JobTemplate.Spec.Template)
		}
		for _, pod := range pods {
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Errorf("%s: %s", f, result.ForbiddenDetail())
			}
			if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
				t.Errorf("%s: every container has the token of the service account", f)
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s may write to its image", f, c.Name)
				}
			}
		}
	}
}

// TestOpenShift: where the cluster assigns users and groups, the chart names none.
func TestOpenShift(t *testing.T) {
	for values, want := range map[string]bool{
		`backup: {enabled: true}`: true,
		`{backup: {enabled: true}, global: {compatibility: {openshift: {adaptSecurityContext: force}}}}`:    false,
		`{backup: {enabled: true}, global: {compatibility: {openshift: {adaptSecurityContext: disabled}}}}`: true,
	} {
		objects, err := render(chartDir, release{"zk", "test"}, []byte(values))
		if err != nil {
			t.Fatal(err)
		}
		set, job := named[appsv1.StatefulSet](t, objects, "zk-zookeeper"), named[batchv1.CronJob](t, objects, "zk-zookeeper-backup")
		for _, pod := range []corev1.PodSpec{set.Spec.Template.Spec, job.Spec.JobTemplate.Spec.Template.Spec} {
			if got := pod.SecurityContext.FSGroup != nil; got != want {
				t.Errorf("%s: the pod has a group: %v", values, got)
			}
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				if s := c.SecurityContext; (s.RunAsUser != nil) != want || (s.RunAsGroup != nil) != want || !*s.RunAsNonRoot {
					t.Errorf("%s: %+v", values, s)
				}
			}
		}
	}
}

// TestNotes: the notes warn about missing values, and about values without an effect.
func TestNotes(t *testing.T) {
	bitnami, err := os.ReadFile("testdata/bitnami.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const plain, quorum, base, drain, unknown = "without tls.client", "without tls.quorum", "may still connect without TLS", "pdb.maxUnavailable lets", "have no effect: "
	for values, want := range map[string][]string{
		``:                        {plain, quorum},
		string(bitnami):           {plain, quorum},
		`backup: {enabled: true}`: {plain, quorum, "and at every backup"},
		`{backup: {enabled: true}, tls: {quorum: {enabled: true, autoGenerated: true}}}`:                                                 {plain},
		`tls: {client: {enabled: true, autoGenerated: true}}`:                                                                            {base, quorum},
		`{service: {disableBaseClientPort: true}, tls: {client: {enabled: true, autoGenerated: true}}}`:                                  {quorum},
		`{networkPolicy: {enabled: false}, tls: {client: {enabled: true, autoGenerated: true}}, service: {disableBaseClientPort: true}}`: {base, quorum, "network policy keeps it closed"},
		`{replicaCount: 3, pdb: {maxUnavailable: 1}}`:                                                                                    {plain, quorum},
		`{replicaCount: 3, pdb: {maxUnavailable: 2}}`:                                                                                    {plain, quorum, drain},
		`{replicas: 3, persistance: {size: 20Gi}, heapSize: 1024, enabled: true, global: {a: b}}`:                                        {plain, quorum, unknown + "persistance, replicas"},
	} {
		c, err := loader.Load(chartDir)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := renderTexts(c, release{"zk", "test"}, []byte(values))
		if err != nil {
			t.Fatal(err)
		}
		notes := texts["zookeeper/templates/NOTES.txt"]
		for _, text := range append([]string{plain, quorum, base, drain, unknown, "and at every backup", "network policy keeps it closed"}, want...) {
			expected := slices.ContainsFunc(want, func(w string) bool { return strings.Contains(w, text) })
			if got := strings.Contains(notes, text); got != expected {
				t.Errorf("%s: the notes have %q: %v\n%s", values, text, got, notes)
			}
		}
	}
}

// TestScalingKeepsThePods: another number of replicas must not change the pods, because every
// server would be restarted.
func TestScalingKeepsThePods(t *testing.T) {
	template := func(values string) string {
		objects, err := render(chartDir, release{"zk", "test"}, []byte("auth: {super: {password: a}}\n"+values))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(named[appsv1.StatefulSet](t, objects, "zk-zookeeper").Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if template("replicaCount: 3") != template("replicaCount: 5") {
		t.Error("the pods of three servers are not those of five")
	}
	if template("replicaCount: 3") == template("replicaCount: 3\nsnapCount: 5") {
		t.Error("another configuration does not restart the servers")
	}
}

// TestNetworkPolicy: quorum and admin ports are open only to servers, the admin port also to
// backups, and with allowExternal=false clients need a label.
func TestNetworkPolicy(t *testing.T) {
	objects := file(t, "network")
	policy := named[networkingv1.NetworkPolicy](t, objects, "zk-zookeeper")
	pod := named[appsv1.StatefulSet](t, objects, "zk-zookeeper").Spec.Template.Labels
	job := named[batchv1.CronJob](t, objects, "zk-zookeeper-backup").Spec.JobTemplate.Spec.Template.Labels
	if !selects(policy.Spec.PodSelector.MatchLabels, pod) || selects(policy.Spec.PodSelector.MatchLabels, job) {
		t.Errorf("the policy is for %v", policy.Spec.PodSelector)
	}
	stranger := map[string]string{"app": "stranger"}
	client := map[string]string{"zk-zookeeper-client": "true"}
	for port, want := range map[int32][]bool{ // a server, a backup, a client, a stranger
		2888: {true, false, false, false}, 3888: {true, false, false, false}, 8080: {true, true, false, false},
		2181: {true, false, true, false}, 9141: {true, true, true, true},
	} {
		var got []bool
		for _, from := range []map[string]string{pod, job, client, stranger} {
			got = append(got, admits(policy, port, from))
		}
		if !slices.Equal(got, want) {
			t.Errorf("port %d: a server, a backup, a client and a stranger get in: %v, not %v", port, got, want)
		}
	}
	// Without the base port, only servers use it.
	policy = named[networkingv1.NetworkPolicy](t, file(t, "certmanager"), "zk-zookeeper")
	if admits(policy, 2181, stranger) || !admits(policy, 2181, pod) || !admits(policy, 3181, stranger) {
		t.Errorf("with service.disableBaseClientPort: %+v", policy.Spec.Ingress)
	}
	policy = named[networkingv1.NetworkPolicy](t, file(t, "three"), "zk-zookeeper")
	if !admits(policy, 2181, stranger) || admits(policy, 2888, stranger) || admits(policy, 8080, stranger) {
		t.Error("by default, clients get in at the client port, and nowhere else")
	}
}

// admits reports whether a policy lets pods of the namespace with these labels in.
func admits(p *networkingv1.NetworkPolicy, port int32, labels map[string]string) bool {
	for _, rule := range p.Spec.Ingress {
		for _, at := range rule.Ports {
			if at.Port.IntVal != port {
				continue
			}
			if len(rule.From) == 0 {
				return true
			}
			for _, from := range rule.From {
				if from.NamespaceSelector == nil && from.PodSelector != nil && selects(from.PodSelector.MatchLabels, labels) {
					return true
				}
			}
		}
	}
	return false
}

// TestAccess: the servers may read the StatefulSets of their release, and nothing else.
func TestAccess(t *testing.T) {
	role := named[rbacv1.Role](t, file(t, "observers"), "zk-zookeeper")
	want := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, ResourceNames: []string{"zk-zookeeper", "zk-zookeeper-observer"}}}
	if fmt.Sprint(role.Rules) != fmt.Sprint(want) {
		t.Errorf("the rules are %v", role.Rules)
	}
}

// TestObservers: observers have their own pods, which the voters' service and budget don't
// select, in the same domain.
func TestObservers(t *testing.T) {
	objects := file(t, "observers")
	voters, observers := named[appsv1.StatefulSet](t, objects, "zk-zookeeper"), named[appsv1.StatefulSet](t, objects, "zk-zookeeper-observer")
	if *observers.Spec.Replicas != 2 || observers.Spec.ServiceName != voters.Spec.ServiceName || observers.Spec.Template.Spec.NodeSelector["zone"] != "far" {
		t.Errorf("%+v", observers.Spec)
	}
	if selects(voters.Spec.Selector.MatchLabels, observers.Spec.Template.Labels) || selects(named[corev1.Service](t, objects, "zk-zookeeper").Spec.Selector, observers.Spec.Template.Labels) {
		t.Error("observers count as voters")
	}
	if !slices.Contains(observers.Spec.Template.Spec.Containers[0].Args, "--statefulset=zk-zookeeper") {
		t.Errorf("the observers don't know the voters: %q", observers.Spec.Template.Spec.Containers[0].Args)
	}
	if budget := named[policyv1.PodDisruptionBudget](t, objects, "zk-zookeeper"); budget.Spec.MinAvailable.IntValue() != 2 || budget.Spec.MaxUnavailable != nil {
		t.Errorf("%+v", budget.Spec)
	}
	// Two available observers of two would stop every drain.
	if budget := named[policyv1.PodDisruptionBudget](t, objects, "zk-zookeeper-observer"); budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%+v", budget.Spec)
	}
}

// config returns the lines of zoo.cfg that a value file makes.
func config(t *testing.T, name string) string {
	t.Helper()
	return named[corev1.ConfigMap](t, file(t, name), "zk-zookeeper").Data["zoo.cfg"]
}

// TestTLS: certificates come from cert-manager, from key stores, or from the chart.
func TestTLS(t *testing.T) {
	objects := file(t, "certmanager")
	certificate := named[certmanager.Certificate](t, objects, "zk-zookeeper-quorum-crt")
	if !slices.Contains(certificate.Spec.DNSNames, "*.zk-zookeeper-headless.test.svc.cluster.local") || certificate.Spec.IssuerRef.Name != "ca" {
		t.Errorf("%+v", certificate.Spec)
	}
	for name, lines := range map[string][]string{
		"certmanager": {"secureClientPort=3181", "ssl.clientAuth=need", "ssl.keyStore.location=/certs/client/tls-combined.pem", "ssl.keyStore.type=PEM", "ssl.trustStore.location=/certs/client/ca.crt", "sslQuorum=true", "ssl.quorum.clientAuth=need"},
		"keystores":   {"ssl.keyStore.location=/certs/client/zookeeper.keystore.jks", "ssl.keyStore.type=JKS", "ssl.keyStore.passwordPath=/certs/client-passwords/k", "ssl.quorum.keyStore.type=PKCS12", "ssl.quorum.trustStore.type=PEM", "ssl.quorum.keyStore.passwordPath=/certs/quorum-passwords/keystore-password"},
		"generated":   {"ssl.keyStore.location=/certs/client/keystore.pem", "ssl.clientAuth=none"},
		"auth":        {"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "enforce.auth.schemes=sasl,digest", "quorum.auth.serverRequireSasl=true"},
	} {
		text := config(t, name)
		for _, line := range lines {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("%s: zoo.cfg lacks %s:\n%s", name, line, text)
			}
		}
	}
	service := named[corev1.Service](t, objects, "zk-zookeeper")
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 3181 {
		t.Errorf("with disableBaseClientPort, the ports are %v", service.Spec.Ports)
	}
	secret := named[corev1.Secret](t, file(t, "generated"), "zk-zookeeper-client-crt")
	if text := string(secret.Data["keystore.pem"]); !strings.Contains(text, "PRIVATE KEY") || !strings.Contains(text, "CERTIFICATE") {
		t.Errorf("the generated key store is %q", text)
	}
}

// TestSecrets: passwords are only in Secrets, and existing Secrets are used instead.
func TestSecrets(t *testing.T) {
	objects := file(t, "auth")
	secret := named[corev1.Secret](t, objects, "zk-zookeeper-client-auth")
	if string(secret.Data["server-password"]) != "pw,pw2" || string(secret.Data["client-password"]) != "pw" {
		t.Errorf("%v", secret.Data)
	}
	for _, o := range objects {
		if text := fmt.Sprintf("%+v", o.typed); o.kind != "Secret" && (strings.Contains(text, "pw2") || strings.Contains(text, "qpw")) {
			t.Errorf("%s %s has a password", o.kind, o.name)
		}
	}
	objects = file(t, "authsecrets")
	if secrets := all[corev1.Secret](objects); len(secrets) != 0 {
		t.Errorf("the chart makes %d Secrets next to the existing ones", len(secrets))
	}
	var used []string
	for _, v := range named[appsv1.StatefulSet](t, objects, "zk-zookeeper").Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			used = append(used, v.Secret.SecretName)
		}
	}
	if want := []string{"zk-root", "client", "quorum"}; !slices.Equal(used, want) {
		t.Errorf("the pods use %q", used)
	}
}

// TestMonitoring: the alerts and the dashboard are the same as in the repository, and the job is the
// one that they ask for.
func TestMonitoring(t *testing.T) {
	for ours, copied := range map[string]string{"deploy/prometheus/alerts.yml": "files/alerts.yml", "deploy/grafana/zkgo.json": "files/dashboard.json"} {
		a, err := os.ReadFile(repository + "/" + ours)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(chartDir + "/" + copied)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is not %s: copy it", copied, ours)
		}
	}
	objects := file(t, "monitoring")
	monitor := named[monitoring.ServiceMonitor](t, objects, "zk-zookeeper")
	if r := monitor.Spec.Endpoints[0].RelabelConfigs[0]; monitor.Namespace != "monitoring" || r.TargetLabel != "job" || *r.Replacement != "zkgo" {
		t.Errorf("%+v", monitor)
	}
	if service := named[corev1.Service](t, objects, "zk-zookeeper-metrics"); !selects(monitor.Spec.Selector.MatchLabels, service.Labels) {
		t.Errorf("the monitor selects %v, not %v", monitor.Spec.Selector.MatchLabels, service.Labels)
	}
	rule := named[monitoring.PrometheusRule](t, objects, "zk-zookeeper")
	if groups := rule.Spec.Groups; len(groups) != 2 || groups[0].Rules[0].Alert != "ZkgoDown" || !strings.Contains(groups[0].Rules[0].Annotations["summary"], "{{ $labels.instance }}") || groups[1].Rules[0].Alert != "Mine" {
		t.Errorf("%+v", groups)
	}
	if text := named[corev1.ConfigMap](t, objects, "zk-zookeeper-dashboard").Data["zkgo.json"]; !strings.HasPrefix(strings.TrimSpace(text), "{") {
		t.Errorf("the dashboard is %.100q", text)
	}
}

// TestBackup: the job writes, stores and restores a backup, in this order, before it gives it its
// name and removes older ones. With TLS, its password goes only to servers with a certificate.
func TestBackup(t *testing.T) {
	from := func(scheme string) (args string) {
		for i := range 3 {
			args += fmt.Sprintf(" --from=%s://zk-zookeeper-%d.zk-zookeeper-headless.test.svc.cluster.local:8080", scheme, i)
		}
		return args
	}
	const toClaim = "restore --data-dir=/scratch/restored /backup/$(POD_NAME).unverified\n" +
		"backup verify --rename=/backup/$(POD_NAME).zkb --keep=5 /backup/$(POD_NAME).unverified\n"
	for name, want := range map[string]string{
		"backup":    "backup" + from("http") + " --keep=3 /backup/$(POD_NAME).unverified\n" + toClaim,
		"backuptls": "backup" + from("https") + " --tls-ca=/ca/ca.crt --keep=3 /backup/$(POD_NAME).unverified\n" + toClaim,
		"s3": "backup" + from("http") + " /scratch/$(POD_NAME).zkb\n" +
			"copyto --s3-no-check-bucket /scratch/$(POD_NAME).zkb :s3:zk/prod/zk/$(POD_NAME).unverified\n" +
			"copyto --s3-no-check-bucket :s3:zk/prod/zk/$(POD_NAME).unverified /scratch/fetched.zkb\n" +
			"restore --data-dir=/scratch/restored /scratch/fetched.zkb\n" +
			"moveto --s3-no-check-bucket :s3:zk/prod/zk/$(POD_NAME).unverified :s3:zk/prod/zk/$(POD_NAME).zkb\n",
	} {
		spec := named[batchv1.CronJob](t, file(t, name), "zk-zookeeper-backup").Spec
		if job := spec.JobTemplate.Spec; spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || job.ActiveDeadlineSeconds == nil || *job.ActiveDeadlineSeconds != 3600 || *job.BackoffLimit != 2 {
			t.Errorf("%s: a job that hangs: %+v", name, job)
		}
		pod := spec.JobTemplate.Spec.Template.Spec
		var steps strings.Builder
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			fmt.Fprintln(&steps, strings.Join(c.Args, " "))
		}
		if steps.String() != want {
			t.Errorf("%s: the steps are\n%s", name, steps.String())
		}
	}

	// The key store stays with the servers.
	pod := named[batchv1.CronJob](t, file(t, "backupkeystores"), "zk-zookeeper-backup").Spec.JobTemplate.Spec.Template.Spec
	if args := strings.Join(pod.InitContainers[0].Args, " "); !strings.Contains(args, " --from=https:") || !strings.Contains(args, " --tls-ca=/ca/zookeeper.truststore.jks --tls-password-file=/ca-password/t ") {
		t.Errorf("the arguments are %s", args)
	}
	var given []string
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			for _, i := range v.Secret.Items {
				given = append(given, v.Name+" "+v.Secret.SecretName+" "+i.Key+" "+i.Path)
			}
		}
	}
	if want := []string{"ca client-certs zookeeper.truststore.jks zookeeper.truststore.jks", "ca-password client-passwords t t"}; !slices.Equal(given, want) {
		t.Errorf("the job has %q", given)
	}
	for _, c := range slices.Concat(pod.InitContainers[1:], pod.Containers) {
		for _, m := range c.VolumeMounts {
			if m.Name != "scratch" && m.Name != "backup" {
				t.Errorf("%s has %s", c.Name, m.Name)
			}
		}
	}
}

// TestAdminTLS: with certificates, the AdminServer and its probes have TLS, and nothing else.
func TestAdminTLS(t *testing.T) {
	for name, store := range map[string]string{
		"default": "", "certmanager": "/certs/quorum/tls-combined.pem", "generated": "/certs/quorum/keystore.pem",
		"keystores": "/certs/quorum/server.p12", "backupkeystores": "/certs/client/zookeeper.keystore.jks",
	} {
		c := named[appsv1.StatefulSet](t, file(t, name), "zk-zookeeper").Spec.Template.Spec.Containers[0]
		scheme, lines := corev1.URISchemeHTTPS, strings.Split(config(t, name), "\n")
		if store == "" {
			scheme = ""
		}
		for kind, p := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
			if p.HTTPGet.Scheme != scheme {
				t.Errorf("%s: the %s probe has the scheme %q", name, kind, p.HTTPGet.Scheme)
			}
		}
		if got := slices.Contains(lines, "admin.forceHttps=true") && slices.Contains(lines, "ssl.quorum.keyStore.location="+store); got != (store != "") {
			t.Errorf("%s: the AdminServer has %s: %v\n%s", name, store, got, config(t, name))
		}
	}
}

// TestExternalAccess: every server has its own service.
func TestExternalAccess(t *testing.T) {
	objects := file(t, "external")
	for i := range 3 {
		s := named[corev1.Service](t, objects, fmt.Sprintf("zk-zookeeper-%d-external", i))
		if s.Spec.Type != corev1.ServiceTypeNodePort || s.Spec.Ports[0].NodePort != int32(30001+i) || s.Spec.Selector["statefulset.kubernetes.io/pod-name"] != fmt.Sprintf("zk-zookeeper-%d", i) {
			t.Errorf("%+v", s.Spec)
		}
	}
}

// TestVolumes: the log has a separate volume with dataLogDir.
func TestVolumes(t *testing.T) {
	set := named[appsv1.StatefulSet](t, file(t, "logvolume"), "zk-zookeeper")
	claims := set.Spec.VolumeClaimTemplates
	if len(claims) != 2 || claims[0].Name != "data" || claims[1].Name != "data-log" || claims[1].Spec.Resources.Requests.Storage().String() != "20Gi" || *claims[0].Spec.StorageClassName != "fast" {
		t.Errorf("%+v", claims)
	}
	if !slices.Contains(set.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "ZOO_DATA_LOG_DIR", Value: "/bitnami/zookeeper-log"}) {
		t.Errorf("%v", set.Spec.Template.Spec.Containers[0].Env)
	}
	if got := named[appsv1.StatefulSet](t, file(t, "ephemeral"), "zk-zookeeper").Spec.VolumeClaimTemplates; len(got) != 0 {
		t.Errorf("without persistence: %v", got)
	}
}

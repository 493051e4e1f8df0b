package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// release is a release's name and namespace.
type release struct{ name, namespace string }

// object is a rendered object.
type object struct {
	kind, name, namespace string
	typed                 any
}

// kinds lists the types of all objects that the chart can make.
var kinds = map[string]func() metav1.Object{
	"v1 ConfigMap":                             func() metav1.Object { return new(corev1.ConfigMap) },
	"v1 PersistentVolumeClaim":                 func() metav1.Object { return new(corev1.PersistentVolumeClaim) },
	"v1 Secret":                                func() metav1.Object { return new(corev1.Secret) },
	"v1 Service":                               func() metav1.Object { return new(corev1.Service) },
	"v1 ServiceAccount":                        func() metav1.Object { return new(corev1.ServiceAccount) },
	"apps/v1 StatefulSet":                      func() metav1.Object { return new(appsv1.StatefulSet) },
	"batch/v1 CronJob":                         func() metav1.Object { return new(batchv1.CronJob) },
	"cert-manager.io/v1 Certificate":           func() metav1.Object { return new(certmanager.Certificate) },
	"monitoring.coreos.com/v1 PrometheusRule":  func() metav1.Object { return new(monitoring.PrometheusRule) },
	"monitoring.coreos.com/v1 ServiceMonitor":  func() metav1.Object { return new(monitoring.ServiceMonitor) },
	"networking.k8s.io/v1 NetworkPolicy":       func() metav1.Object { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":            func() metav1.Object { return new(policyv1.PodDisruptionBudget) },
	"rbac.authorization.k8s.io/v1 Role":        func() metav1.Object { return new(rbacv1.Role) },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() metav1.Object { return new(rbacv1.RoleBinding) },
}

// render renders the chart in a directory as "helm install" does, and checks the objects.
func render(dir string, r release, values []byte) ([]object, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	return renderChart(c, r, values)
}

func renderChart(c *chart.Chart, r release, values []byte) ([]object, error) {
	texts, err := renderTexts(c, r, values)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasSuffix(file, "NOTES.txt") {
			continue
		}
		for i, text := range strings.Split("\n"+texts[file], "\n---") {
			o, err := parse(text)
			if err != nil {
				return nil, fmt.Errorf("%s, object %d: %w", file, i, err)
			}
			if o != nil {
				objects = append(objects, *o)
			}
		}
	}
	return objects, check(objects)
}

// renderTexts returns the rendered templates by file.
func renderTexts(c *chart.Chart, r release, values []byte) (map[string]string, error) {
	given, err := chartutil.ReadValues(values)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, IsInstall: true, Revision: 1}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// parse reads an object into its type. It returns nil for a text without an object.
func parse(text string) (*object, error) {
	var meta metav1.PartialObjectMetadata
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		return nil, fmt.Errorf("%w:\n%s", err, text)
	}
	if meta.Kind == "" {
		if strings.Trim(strings.TrimSpace(removeComments(text)), "-") != "" {
			return nil, fmt.Errorf("an object without a kind: %s", text)
		}
		return nil, nil
	}
	create := kinds[meta.APIVersion+" "+meta.Kind]
	if create == nil {
		return nil, fmt.Errorf("the kind %s %s is not known here", meta.APIVersion, meta.Kind)
	}
	typed := create()
	if err := yaml.UnmarshalStrict([]byte(text), typed); err != nil {
		return nil, fmt.Errorf("%s %s: %w", meta.Kind, meta.Name, err)
	}
	return &object{meta.Kind, meta.Name, meta.Namespace, typed}, nil
}

func removeComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// all returns the objects of a type.
func all[T any](objects []object) (found []*T) {
	for _, o := range objects {
		if t, ok := o.typed.(*T); ok {
			found = append(found, t)
		}
	}
	return found
}

// check looks for names that are used twice, and for references that don't resolve.
func check(objects []object) error {
	names := map[string]bool{}
	var errs []error
	for _, o := range objects {
		key := o.kind + " " + o.namespace + "/" + o.name
		if names[key] {
			errs = append(errs, fmt.Errorf("%s is there twice", key))
		}
		names[key] = true
		if len(o.name) > 63 || o.namespace == "" {
			errs = append(errs, fmt.Errorf("%s: a name of %d characters in the namespace %q", key, len(o.name), o.namespace))
		}
	}
	for _, set := range all[appsv1.StatefulSet](objects) {
		errs = append(errs, checkSet(set, objects)...)
	}
	for _, job := range all[batchv1.CronJob](objects) {
		pod := job.Spec.JobTemplate.Spec.Template.Spec
		errs = append(errs, checkPod(job.Name, pod, nil)...)
		if len(job.Name) > 52 {
			errs = append(errs, fmt.Errorf("%s: the name of a CronJob has at most 52 characters", job.Name))
		}
	}
	return errors.Join(errs...)
}

// checkSet checks a StatefulSet and the objects that select its pods.
func checkSet(set *appsv1.StatefulSet, objects []object) (errs []error) {
	pod := set.Spec.Template
	if !selects(set.Spec.Selector.MatchLabels, pod.Labels) {
		errs = append(errs, fmt.Errorf("%s does not select its own pods", set.Name))
	}
	governed := false
	ports := map[string]bool{}
	for _, p := range pod.Spec.Containers[0].Ports {
		ports[p.Name] = true
	}
	for _, s := range all[corev1.Service](objects) {
		if s.Name == set.Spec.ServiceName {
			governed = s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.PublishNotReadyAddresses && selects(s.Spec.Selector, pod.Labels)
		}
		if !selects(s.Spec.Selector, pod.Labels) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if p.TargetPort.StrVal != "" && !ports[p.TargetPort.StrVal] {
				errs = append(errs, fmt.Errorf("service %s: there is no port %s", s.Name, p.TargetPort.StrVal))
			}
		}
	}
	if !governed {
		errs = append(errs, fmt.Errorf("%s: no headless service %s with not ready addresses", set.Name, set.Spec.ServiceName))
	}
	var claims []string
	for _, c := range set.Spec.VolumeClaimTemplates {
		claims = append(claims, c.Name)
	}
	return append(errs, checkPod(set.Name, pod.Spec, claims)...)
}

// checkPod checks that each of the containers' volumes exists exactly once.
func checkPod(name string, pod corev1.PodSpec, volumes []string) (errs []error) {
	for _, v := range pod.Volumes {
		if slices.Contains(volumes, v.Name) {
			errs = append(errs, fmt.Errorf("%s: two volumes %s", name, v.Name))
		}
		volumes = append(volumes, v.Name)
		if reflect.DeepEqual(v.VolumeSource, corev1.VolumeSource{}) {
			errs = append(errs, fmt.Errorf("%s: the volume %s has no source", name, v.Name))
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if !slices.Contains(volumes, m.Name) {
				errs = append(errs, fmt.Errorf("%s: there is no volume %s", name, m.Name))
			}
		}
		env := map[string]bool{}
		for _, e := range c.Env {
			if env[e.Name] {
				errs = append(errs, fmt.Errorf("%s: the variable %s is there twice", name, e.Name))
			}
			env[e.Name] = true
		}
	}
	return errs
}

// selects reports whether labels match a selector.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

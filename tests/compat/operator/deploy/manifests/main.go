// Command manifests builds a kustomization and reads every object into the types of the
// Kubernetes API, where an unknown or misspelt field is an error. It checks that all
// references between the objects resolve, and prints the result as JSON.
//
// It is a separate module, so that zkgo doesn't depend on kustomize and the Kubernetes
// types.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// objects contains everything in a kustomization.
type objects struct {
	Services     []corev1.Service
	ConfigMaps   []corev1.ConfigMap
	StatefulSets []appsv1.StatefulSet
	Budgets      []policyv1.PodDisruptionBudget
	Policies     []networkingv1.NetworkPolicy
}

func main() {
	all, err := build(os.Args[1])
	if err == nil {
		err = all.check()
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// build builds a kustomization and reads its objects.
func build(dir string) (*objects, error) {
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var all objects
	for _, r := range found.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		if err := all.add(r.GetApiVersion()+" "+r.GetKind(), text); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.GetKind(), r.GetName(), err)
		}
	}
	return &all, nil
}

func (o *objects) add(kind string, text []byte) error {
	switch kind {
	case "v1 Service":
		return strict(&o.Services, text)
	case "v1 ConfigMap":
		return strict(&o.ConfigMaps, text)
	case "apps/v1 StatefulSet":
		return strict(&o.StatefulSets, text)
	case "policy/v1 PodDisruptionBudget":
		return strict(&o.Budgets, text)
	case "networking.k8s.io/v1 NetworkPolicy":
		return strict(&o.Policies, text)
	}
	return fmt.Errorf("%s is not known here", kind)
}

// strict parses an object, rejecting unknown fields, and adds it to a list.
func strict[T any](list *[]T, text []byte) error {
	var object T
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

// check looks for references that don't resolve.
func (o *objects) check() error {
	if len(o.StatefulSets) != 1 || len(o.ConfigMaps) != 1 {
		return fmt.Errorf("%d stateful sets and %d config maps", len(o.StatefulSets), len(o.ConfigMaps))
	}
	set := o.StatefulSets[0]
	pod := set.Spec.Template
	matches := func(what string, selector map[string]string) error {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			return fmt.Errorf("%s selects %v, the pods have %v", what, selector, pod.Labels)
		}
		return nil
	}
	ports := map[string]bool{}
	container := pod.Spec.Containers[0]
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	named := func(what string, p intstr.IntOrString) error {
		if p.Type != intstr.String || !ports[p.StrVal] {
			return fmt.Errorf("%s names port %s, the container has %v", what, p.String(), ports)
		}
		return nil
	}
	errs := []error{matches("the stateful set", set.Spec.Selector.MatchLabels)}
	governs := false
	for _, s := range o.Services {
		governs = governs || s.Name == set.Spec.ServiceName && s.Spec.ClusterIP == corev1.ClusterIPNone
		errs = append(errs, matches("service "+s.Name, s.Spec.Selector))
		for _, p := range s.Spec.Ports {
			errs = append(errs, named("service "+s.Name, p.TargetPort))
		}
	}
	if !governs {
		errs = append(errs, fmt.Errorf("there is no headless service %s", set.Spec.ServiceName))
	}
	for _, b := range o.Budgets {
		errs = append(errs, matches("budget "+b.Name, b.Spec.Selector.MatchLabels))
	}
	for _, p := range o.Policies {
		errs = append(errs, matches("policy "+p.Name, p.Spec.PodSelector.MatchLabels))
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				errs = append(errs, named("policy "+p.Name, *port.Port))
			}
		}
	}
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		errs = append(errs, named("a probe", probe.HTTPGet.Port))
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range set.Spec.VolumeClaimTemplates {
		volumes[v.Name] = true
	}
	for _, m := range container.VolumeMounts {
		if !volumes[m.Name] {
			errs = append(errs, fmt.Errorf("there is no volume %s", m.Name))
		}
	}
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef.Name != o.ConfigMaps[0].Name {
			errs = append(errs, fmt.Errorf("there is no config map %s", from.ConfigMapRef.Name))
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Package statefulset keeps the members of an ensemble in sync with the pods of a Kubernetes
// StatefulSet: a new server adds itself to the ensemble, and a server that is scaled down
// removes itself before it stops.
//
// Rules:
//
//   - The number of pods comes from the Kubernetes API each time it matters. A variable of the
//     pod would be stale after "kubectl scale".
//   - A server that doesn't know for sure that it was scaled down stays a member: a member that
//     is away is safe, and a member that leaves at every restart is not.
//   - Only the ensemble decides whether a change is safe. We ask again until it agrees.
//   - Zero replicas stop the ensemble and remove no member. So does a StatefulSet that is
//     deleted.
//
// It imports the client and the standard library.
package statefulset

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// accountDir is where a pod finds the credentials of its service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// API reads StatefulSets of one namespace.
type API struct {
	url       string // without the name
	tokenFile string // read again for each request, because the token changes
	http      *http.Client
}

// InCluster returns the API of the cluster that this pod runs in.
func InCluster(getenv func(string) string) (*API, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: --statefulset works only in a pod")
	}
	return newAPI("https://"+net.JoinHostPort(host, port), accountDir)
}

// newAPI returns the API at a URL, with the service account in a directory.
func newAPI(url, dir string) (*API, error) {
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account (automountServiceAccountToken): %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s contains no certificate", filepath.Join(dir, "ca.crt"))
	}
	namespace, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil {
		return nil, err
	}
	return &API{
		url:       url + "/apis/apps/v1/namespaces/" + strings.TrimSpace(string(namespace)) + "/statefulsets/",
		tokenFile: filepath.Join(dir, "token"),
		http: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
	}, nil
}

// Size is how many pods a StatefulSet should have, and how many exist.
type Size struct {
	First    int  // ordinal of the first pod
	Replicas int  // pods that should exist
	Existing int  // pods that exist, including pods that are being stopped
	Gone     bool // the StatefulSet is deleted or about to be
}

// wants reports whether a pod with this ordinal should exist.
func (s Size) wants(ordinal int) bool {
	return !s.Gone && ordinal >= s.First && ordinal < s.First+s.Replicas
}

// end returns the ordinal after the last pod that exists or should exist.
func (s Size) end() int { return s.First + max(s.Replicas, s.Existing) }

// errRefused says that the API doesn't let this server read a StatefulSet. After "helm uninstall"
// it never does again: the service account and its Role are gone before the pods.
var errRefused = errors.New("the Kubernetes API refuses")

// Size reads the size of a StatefulSet.
func (a *API) Size(ctx context.Context, name string) (Size, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+name, nil)
	if err != nil {
		return Size{}, err
	}
	token, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return Size{}, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	res, err := a.http.Do(req)
	if err != nil {
		return Size{}, fmt.Errorf("the Kubernetes API does not answer: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	switch {
	case err != nil:
		return Size{}, err
	case res.StatusCode == http.StatusNotFound:
		return Size{Gone: true}, nil
	case res.StatusCode == http.StatusForbidden:
		return Size{}, fmt.Errorf("%w: the service account may not read the StatefulSet %s: give it a Role with the verb get for it", errRefused, name)
	case res.StatusCode == http.StatusUnauthorized:
		return Size{}, fmt.Errorf("%w: it doesn't know this server's service account (for the StatefulSet %s)", errRefused, name)
	case res.StatusCode != http.StatusOK:
		return Size{}, fmt.Errorf("the Kubernetes API answers %s for the StatefulSet %s", res.Status, name)
	}
	return parseSize(body)
}

// parseSize reads a StatefulSet.
func parseSize(body []byte) (Size, error) {
	var set struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec *struct {
			Replicas *int `json:"replicas"` // 1 if missing
			Ordinals struct {
				Start int `json:"start"`
			} `json:"ordinals"`
		} `json:"spec"`
		Status struct {
			Replicas int `json:"replicas"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return Size{}, fmt.Errorf("the Kubernetes API sent no StatefulSet: %w", err)
	}
	if set.Spec == nil {
		return Size{}, errors.New("the Kubernetes API sent no StatefulSet: it has no spec")
	}
	s := Size{First: set.Spec.Ordinals.Start, Replicas: 1, Existing: set.Status.Replicas, Gone: set.Metadata.DeletionTimestamp != nil}
	if set.Spec.Replicas != nil {
		s.Replicas = *set.Spec.Replicas
	}
	return s, nil
}

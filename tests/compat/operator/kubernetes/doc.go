// Package kubernetes tests the Helm chart in deploy/helm, and the servers of its StatefulSet
// as Kubernetes runs them, without Kubernetes: every pod is a process with its own root directory,
// host name and network, a fake resolver knows its name, and a fake API returns the number of pods.
//
// It runs with ZKGO_REQUIRE=1, as root on Linux.
package kubernetes

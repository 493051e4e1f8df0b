// Package kubernetes tests the Helm chart in deploy/helm, and the servers of its StatefulSet
// as Kubernetes runs them, without Kubernetes: every pod is a process with a root directory, a
// host name and a network of its own, a fake resolver knows its name, and a fake API tells how
// many pods there should be.
//
// It runs with ZKGO_REQUIRE=1, as root on Linux.
package kubernetes

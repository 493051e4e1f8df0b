// Package cluster tests the Helm chart in deploy/helm on a real Kubernetes.
//
// cluster.sh builds and starts one on this machine. Then:
//
//	KUBECONFIG=/var/lib/zkgo-kubernetes/admin.conf ZKGO_KUBERNETES=1 go test -v -timeout 60m ./tests/compat/operator/kubernetes/cluster
//
// The tests need kubectl and helm, and reach services by their addresses, so they run on a node.
// Without ZKGO_KUBERNETES=1 they are skipped.
package cluster

#!/usr/bin/env bash
# A Kubernetes cluster of one node, built from Go modules and Debian's packages:
#
#   cluster.sh build      builds Kubernetes, CoreDNS, Helm and the images (up to an hour on two CPUs)
#   cluster.sh up         starts the cluster; KUBECONFIG is then $DIR/admin.conf
#   cluster.sh image      builds the image of zkgo again, and gives it to the node
#   cluster.sh volumes N  adds volumes for claims
#   cluster.sh down       stops the cluster and removes its state, but not what build made
#
# It runs as root on Debian 12 with Go and these packages: etcd-server containerd runc
# containernetworking-plugins conntrack nftables iproute2 openssl. kubectl has to be 1.30 or later.
# All files are in DIR.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
repository=$(readlink -f "$here/../../../../..")
DIR=${DIR:-/var/lib/zkgo-kubernetes}
VERSION=${VERSION:-1.33.13}
COREDNS=${COREDNS:-v1.14.7}
HELM=${HELM:-v3.22.0}

bin=$DIR/bin
pki=$DIR/pki
run=$DIR/run
node=$(hostname | tr '[:upper:]' '[:lower:]')
address=$(ip -4 route get 198.51.100.1 | sed -n 's/.* src \([0-9.]*\).*/\1/p')
api=16443
pods=10.244.0.0/24
services=10.96.0.0/16
dns=10.96.0.10
socket=$DIR/containerd.sock
export PATH=$bin:$PATH

# build_module FOLDER LDFLAGS PACKAGES… builds programs of the module in the folder.
build_module() {
  local folder=$1 ldflags=$2
  shift 2
  (cd "$folder" && GOFLAGS=-mod=mod CGO_ENABLED=0 nice go build -trimpath -ldflags "-s -w $ldflags" -o "$bin/" "$@")
}

build_kubernetes() {
  local src=$DIR/src/kubernetes dir flags="" p
  [ "$("$bin/kubelet" --version 2>/dev/null)" = "Kubernetes v$VERSION" ] && return
  mkdir -p "$src"
  dir=$(go mod download -json "k8s.io/kubernetes@v$VERSION" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  {
    printf 'module cluster\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$VERSION"
    # The module has its libraries in a folder that its archive lacks.
    grep -o 'k8s.io/[a-z-]* => ./staging' "$dir/go.mod" | awk -v v="v0${VERSION#1}" '{print "\t"$1" => "$1" "v}'
    printf ')\n'
  } >"$src/go.mod"
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags="$flags -X $p.gitVersion=v$VERSION -X $p.gitMajor=1 -X $p.gitMinor=$(cut -d. -f2 <<<"$VERSION")"
  done
  build_module "$src" "$flags" k8s.io/kubernetes/cmd/kube-{apiserver,controller-manager,scheduler,proxy} k8s.io/kubernetes/cmd/kubelet
}

# build_tool NAME MODULE VERSION PACKAGE
build_tool() {
  [ -x "$bin/$1" ] && return
  mkdir -p "$DIR/src/$1"
  printf 'module tool\n\ngo 1.24.0\n\nrequire %s %s\n' "$2" "$3" >"$DIR/src/$1/go.mod"
  build_module "$DIR/src/$1" "" "$4"
}

# pause_image writes the image that holds a pod's namespaces, as docker save does.
pause_image() {
  local work=$DIR/src/pause
  mkdir -p "$work/root"
  cat >"$work/main.go" <<'GO'
// Command pause holds the namespaces of a pod.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
GO
  (cd "$work" && CGO_ENABLED=0 go build -ldflags "-s -w" -o root/pause main.go)
  tar -C "$work/root" --owner=0 --group=0 -cf "$work/layer.tar" pause
  cat >"$work/config.json" <<JSON
{"architecture":"$(go env GOARCH)","os":"linux","config":{"Entrypoint":["/pause"]},
 "rootfs":{"type":"layers","diff_ids":["sha256:$(sha256sum "$work/layer.tar" | cut -d' ' -f1)"]}}
JSON
  echo '[{"Config":"config.json","RepoTags":["localhost/pause:1"],"Layers":["layer.tar"]}]' >"$work/manifest.json"
  tar -C "$work" -cf "$DIR/images/pause.tar" manifest.json config.json layer.tar
}

# zkgo_image builds the image as a release does.
zkgo_image() {
  local out
  out=$(mktemp -d)
  mkdir -p "$DIR/images"
  nice go run -C "$repository/deploy/release" . -platforms "linux/$(go env GOARCH)" -out "$out/dist"
  mv "$out"/dist/*-image.tar "$DIR/images/zkgo.tar"
  rm -rf "$out"
}

# load gives the images to the node. That of zkgo gets the name which the chart's defaults have.
load() {
  local i name
  for i in "$DIR"/images/*.tar; do
    name=$(ctr -a "$socket" -n k8s.io images import "$i" | sed -n 's/^unpacking \([^ ]*\) .*/\1/p')
    case $name in
    */zkgo:*) ctr -a "$socket" -n k8s.io images tag --force "$name" "ghcr.io/zkgo/zkgo:$(sed -n 's/^appVersion: "\(.*\)"/\1/p' "$repository/deploy/helm/zookeeper/Chart.yaml")" >/dev/null ;;
    esac
  done
}

build() {
  mkdir -p "$bin" "$DIR/images"
  build_tool helm helm.sh/helm/v3 "$HELM" helm.sh/helm/v3/cmd/helm
  build_kubernetes
  build_tool coredns github.com/coredns/coredns "$COREDNS" github.com/coredns/coredns
  pause_image
  zkgo_image
}

# certificate NAME SUBJECT [SAN]
certificate() {
  [ -s "$pki/$1.crt" ] && return
  openssl req -new -newkey rsa:2048 -nodes -keyout "$pki/$1.key" -subj "$2" -out "$pki/$1.csr" 2>/dev/null
  openssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 3650 -out "$pki/$1.crt" \
    -extfile <(echo "extendedKeyUsage=serverAuth,clientAuth"; [ -z "${3:-}" ] || echo "subjectAltName=$3") 2>/dev/null
}

# kubeconfig NAME
kubeconfig() {
  cat >"$DIR/$1.conf" <<YAML
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://$address:$api", certificate-authority: $pki/ca.crt}}]
users: [{name: u, user: {client-certificate: $pki/$1.crt, client-key: $pki/$1.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
YAML
}

certificates() {
  mkdir -p "$pki"
  [ -s "$pki/ca.crt" ] || openssl req -x509 -newkey rsa:2048 -nodes -keyout "$pki/ca.key" -subj /CN=kubernetes -days 3650 -out "$pki/ca.crt" 2>/dev/null
  [ -s "$pki/sa.key" ] || { openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null; openssl rsa -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null; }
  certificate apiserver /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:10.96.0.1,IP:127.0.0.1,IP:$address"
  certificate admin /O=system:masters/CN=admin
  certificate kubelet "/O=system:nodes/CN=system:node:$node" "DNS:$node,IP:$address"
  certificate controllers /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate proxy /CN=system:kube-proxy
  local c
  for c in admin kubelet controllers scheduler proxy; do kubeconfig "$c"; done
}

# start NAME COMMAND… runs a process of the cluster in the background.
start() {
  local name=$1
  shift
  mkdir -p "$run" "$DIR/log"
  if [ -s "$run/$name.pid" ] && kill -0 "$(cat "$run/$name.pid")" 2>/dev/null; then return; fi
  setsid "$@" >>"$DIR/log/$name.log" 2>&1 </dev/null &
  echo $! >"$run/$name.pid"
}

# await COMMAND… waits until a command succeeds.
await() {
  local i
  for i in $(seq 120); do
    "$@" >/dev/null 2>&1 && return
    sleep 1
  done
  echo "does not succeed: $*" >&2
  return 1
}

control_plane() {
  start etcd etcd --data-dir "$DIR/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:12379 --advertise-client-urls http://127.0.0.1:12379 \
    --listen-peer-urls http://127.0.0.1:12380 --initial-advertise-peer-urls http://127.0.0.1:12380 --initial-cluster default=http://127.0.0.1:12380
  start apiserver kube-apiserver --etcd-servers http://127.0.0.1:12379 --bind-address 0.0.0.0 --advertise-address "$address" --secure-port "$api" \
    --service-cluster-ip-range "$services" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --kubelet-client-certificate "$pki/admin.crt" --kubelet-client-key "$pki/admin.key" --kubelet-certificate-authority "$pki/ca.crt" \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$pki/sa.pub" --service-account-signing-key-file "$pki/sa.key" \
    --allow-privileged
  await kubectl --kubeconfig "$DIR/admin.conf" get --raw /readyz
  start controllers kube-controller-manager --kubeconfig "$DIR/controllers.conf" --service-account-private-key-file "$pki/sa.key" \
    --root-ca-file "$pki/ca.crt" --use-service-account-credentials --leader-elect=false --bind-address 127.0.0.1 --secure-port 20257
  start scheduler kube-scheduler --kubeconfig "$DIR/scheduler.conf" --leader-elect=false --bind-address 127.0.0.1 --secure-port 20259
}

node() {
  mkdir -p "$DIR/cni" "$DIR/kubelet"
  cat >"$DIR/cni/10-zkgo.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "zkgo", "plugins": [
  {"type": "bridge", "bridge": "zkgo0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$DIR/ipam", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  # A root without CAP_SYS_RESOURCE cannot protect processes from the OOM killer.
  cat >"$DIR/containerd.toml" <<TOML
version = 2
root = "$DIR/containerd"
state = "/run/zkgo-kubernetes"
oom_score = 0
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$DIR/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "runc"
TOML
  cat >"$DIR/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet.crt
tlsPrivateKeyFile: $pki/kubelet.key
containerRuntimeEndpoint: unix://$socket
cgroupDriver: cgroupfs
cgroupsPerQOS: true
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
oomScoreAdj: 0
resolvConf: /etc/resolv.conf
clusterDNS: [$dns]
clusterDomain: cluster.local
port: 20250
healthzPort: 20248
readOnlyPort: 0
podLogsDir: $DIR/pods
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
featureGates: {KubeletInUserNamespace: true}
YAML
  cat >"$DIR/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $DIR/proxy.conf}
mode: nftables
clusterCIDR: $pods
hostnameOverride: $node
bindAddress: $address
healthzBindAddress: 127.0.0.1:20256
metricsBindAddress: 127.0.0.1:20249
conntrack: {maxPerCore: 0}
YAML
  sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
  start containerd containerd -c "$DIR/containerd.toml"
  await ctr -a "$socket" version
  load
  start kubelet kubelet --config "$DIR/kubelet.yaml" --kubeconfig "$DIR/kubelet.conf" --root-dir "$DIR/kubelet" --hostname-override "$node" --node-ip "$address"
  start proxy kube-proxy --config "$DIR/proxy.yaml"
}

# name_service runs CoreDNS on the node, at the address that pods have in resolv.conf.
name_service() {
  ip addr replace "$dns/32" dev lo
  cat >"$DIR/Corefile" <<DNS
.:53 {
  bind $dns
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $DIR/admin.conf
    ttl 5
  }
  forward . /etc/resolv.conf
}
DNS
  start coredns coredns -conf "$DIR/Corefile"
}

# volumes N adds N local volumes. Each is a folder.
volumes() {
  mkdir -p "$DIR/volumes"
  local n i
  n=$(find "$DIR/volumes" -mindepth 1 -maxdepth 1 | wc -l)
  {
    cat <<YAML
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
YAML
    for i in $(seq $((n + 1)) $((n + $1))); do
      mkdir -p "$DIR/volumes/v$i"
      cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: v$i}
spec:
  capacity: {storage: 8Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  persistentVolumeReclaimPolicy: Retain
  local: {path: $DIR/volumes/v$i}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node]}]}]}}
YAML
    done
  } | kubectl --kubeconfig "$DIR/admin.conf" apply -f - >/dev/null
}

up() {
  certificates
  control_plane
  node
  name_service
  await kubectl --kubeconfig "$DIR/admin.conf" wait --for=condition=Ready "node/$node" --timeout=5s
  volumes "${1:-30}"
  echo "export KUBECONFIG=$DIR/admin.conf PATH=$bin:\$PATH"
}

# stop NAME ends a process that start started.
stop() {
  local pid
  pid=$(cat "$run/$1.pid" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  rm -f "$run/$1.pid"
}

down() {
  local p s
  for p in coredns proxy kubelet scheduler controllers apiserver etcd; do stop "$p"; done
  if [ -s "$run/containerd.pid" ]; then
    for s in $(ctr -a "$socket" -n k8s.io tasks ls -q); do ctr -a "$socket" -n k8s.io tasks rm -f "$s" >/dev/null || true; done
    for s in $(ctr -a "$socket" -n k8s.io containers ls -q); do ctr -a "$socket" -n k8s.io containers rm "$s" >/dev/null || true; done
    stop containerd
  fi
  awk -v d="$DIR/" -v r="/run/zkgo-kubernetes/" 'index($2, d) == 1 || index($2, r) == 1 {print $2}' /proc/mounts | tac | xargs -r umount -l
  ip link del zkgo0 2>/dev/null || true
  ip addr del "$dns/32" dev lo 2>/dev/null || true
  nft delete table ip kube-proxy 2>/dev/null || true
  nft delete table ip6 kube-proxy 2>/dev/null || true
  rm -rf "$DIR"/{etcd,kubelet,containerd,pods,volumes,ipam,pki,run,log,cni} "$DIR"/*.conf /run/zkgo-kubernetes
}

case ${1:-} in
build | up | down) "$@" ;;
volumes) volumes "${2:-10}" ;;
image) zkgo_image && load ;;
*)
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
  exit 2
  ;;
esac

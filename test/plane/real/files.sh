# Writes the configuration of the real node's processes. Sourced by ../real-node, which says what the
# variables mean.
write_files() {
  mkdir -p "$NODE/cni"
  cat >"$NODE/cni/pods.conflist" <<C
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
 {"type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "ipMasq": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$NODE/cni", "ranges": [[{"subnet": "$NET.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
C
  # restrict_oom_score_adj: for a root without CAP_SYS_RESOURCE, as in a container.
  cat >"$NODE/containerd.toml" <<C
version = 2
root = "$NODE/containerd"
state = "/run/real-node"
[grpc]
  address = "$CONTAINERD_ADDRESS"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$NODE/cni"
C
  # imageGCHighThresholdPercent: images are never removed, as they cannot be pulled again.
  cat >"$NODE/kubelet.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NET.1
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$CONTAINERD_ADDRESS
clusterDNS: [$NET.1]
clusterDomain: cluster.local
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
podLogsDir: $NODE/logs
volumePluginDir: $NODE/plugins
C
  cat >"$NODE/kube-proxy.yaml" <<C
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $RUN/admin.kubeconfig}
clusterCIDR: $NET.0/24
hostnameOverride: $NAME
conntrack: {maxPerCore: 0}
C
  cat >"$NODE/Corefile" <<C
cluster.local in-addr.arpa {
  bind $NET.1
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $RUN/admin.kubeconfig
    pods insecure
  }
}
. {
  bind $NET.1
  errors
  cache
  forward . /etc/resolv.conf
}
C
}

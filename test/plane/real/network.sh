# The network of the real node. Sourced by ../real-node, which says what the variables mean.
sysctls='vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes
  net.ipv4.ip_forward net.ipv4.conf.all.route_localnet'

# Pods reach the API server, which listens on loopback only, by the address of its Service. The kubelet
# answers this machine alone.
network_up() {
  # shellcheck disable=SC2086
  [ -f "$NODE/sysctl" ] || sysctl -e $sysctls >"$NODE/sysctl" # the kubelet and we change them; `down` sets them as they were
  sysctl -qw net.ipv4.ip_forward=1
  ip link show $BRIDGE >/dev/null 2>&1 || ip link add $BRIDGE type bridge
  ip addr replace $NET.1/24 dev $BRIDGE
  ip link set $BRIDGE up
  ip route replace 10.96.0.0/16 dev $BRIDGE # Services are then dialled from an address that pods can answer to
  sysctl -qw net.ipv4.conf.$BRIDGE.route_localnet=1
  sysctl -qw net.bridge.bridge-nf-call-iptables=1
  nft delete table ip real-node 2>/dev/null || true
  nft -f - <<N
table ip real-node {
  chain pods { type nat hook prerouting priority -110; ip daddr $API tcp dport 443 dnat to 127.0.0.1:$PORT; }
  chain host { type nat hook output priority -110; ip daddr $API tcp dport 443 dnat to 127.0.0.1:$PORT; }
  chain kubelet { type filter hook input priority filter; iifname != "lo" tcp dport 10250 drop; }
}
N
}

network_down() {
  nft delete table ip real-node 2>/dev/null || true
  for family in ip ip6; do nft delete table $family kube-proxy 2>/dev/null || true; done
  ip link del $BRIDGE 2>/dev/null || true
  [ ! -f "$NODE/sysctl" ] || { sysctl -qp "$NODE/sysctl"; rm "$NODE/sysctl"; }
}

#!/bin/bash
# behind_routers.sh PROGRAM CONFIG OUT: trains with five ranks, of which rank 0 has a public address. Ranks 1 and 2 are
# behind one router, 3 and 4 behind another; both give addresses of the same private network, and let connections out
# and none in. Leaves each rank's exit status and what it says in OUT/status-RANK, OUT/out-RANK and OUT/err-RANK. A host
# is a network namespace; all is inside a user namespace, so no root is needed and nothing is left behind.
set -euo pipefail

. "$(dirname "$0")/hosts.sh"
program=$1 config=$2 out=$3
mkdir -p "$out"

# bridge NAME, join BRIDGE HOST INTERFACE ADDRESS: a switch, and a host's cable to it.
bridge() {
  ip netns add "$1"
  ip -n "$1" link add bridge type bridge
  ip -n "$1" link set bridge up
}
join() {
  ip link add "$3" netns "$2" type veth peer name "to-$2" netns "$1"
  ip -n "$1" link set "to-$2" master bridge up
  ip -n "$2" addr add "$4" dev "$3"
  ip -n "$2" link set "$3" up
}
host() {
  ip netns add "$1"
  ip -n "$1" link set lo up
}

bridge internet
host host0
join internet host0 eth0 203.0.113.1/24
for home in a b; do
  bridge "home-$home"
  host "router-$home"
  [ "$home" = a ] && public=203.0.113.2/24 || public=203.0.113.3/24
  join internet "router-$home" wan "$public"
  join "home-$home" "router-$home" lan 192.168.1.1/24
  ip netns exec "router-$home" sysctl -qw net.ipv4.ip_forward=1
  ip netns exec "router-$home" nft -f - <<'RULES'
table ip nat {
  chain leaving { type nat hook postrouting priority 100; oifname "wan" masquerade; }
}
table ip filter {
  chain through { type filter hook forward priority 0; iifname "wan" ct state new drop; }
  chain own { type filter hook input priority 0; iifname "wan" ct state new drop; }
}
RULES
done
rank=1
for home in a b; do
  for last in 2 3; do
    host "host$rank"
    join "home-$home" "host$rank" eth0 "192.168.1.$last/24"
    ip -n "host$rank" route add default via 192.168.1.1
    rank=$((rank + 1))
  done
done

for rank in 0 1 2 3 4; do
  (
    variables_of "$rank" 5
    export MASTER_ADDR=203.0.113.1
    status=0
    ip netns exec "host$rank" "$program" train "$config" --out "$out" >"$out/out-$rank" 2>"$out/err-$rank" || status=$?
    echo "$status" >"$out/status-$rank"
  ) &
done
wait

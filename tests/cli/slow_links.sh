#!/bin/bash
# slow_links.sh PROGRAM CONFIG OUT [apart]: examines three ranks, each on a host of its own. What rank 2 sends is limited
# to 10 Mbit/s, what the others send to 200 Mbit/s. With `apart`, ranks 1 and 2 cannot reach each other. Leaves each
# rank's exit status and what it prints in OUT/status-RANK, OUT/out-RANK and OUT/err-RANK, and the links in
# OUT/links.json.
set -euo pipefail
. "$(dirname "$0")/hosts.sh"
program=$1 config=$2 out=$3

mkdir -p "$out"
make_hosts 3
for rank in 0 1 2; do
  rate=200mbit
  [ "$rank" = 2 ] && rate=10mbit
  ip -n "host$rank" link set eth0 gso_max_size 3000
  tc -n "host$rank" qdisc add dev eth0 root tbf rate $rate burst 6400 limit 262144
done
if [ "${4:-}" = apart ]; then ip -n host1 route add blackhole 10.77.0.3/32; fi

for rank in 0 1 2; do
  (
    variables_of "$rank" 3
    status=0
    ip netns exec "host$rank" "$program" doctor "$config" --ranks --seconds 0.5 --out "$out/links.json" \
      >"$out/out-$rank" 2>"$out/err-$rank" || status=$?
    echo "$status" >"$out/status-$rank"
  ) &
done
wait

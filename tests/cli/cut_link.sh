#!/bin/bash
# cut_link.sh PROGRAM CONFIG OUT: trains with four ranks, each on a host of its own, and cuts the link of rank 2 as if
# its cable were pulled once there is a checkpoint. Leaves each rank's exit status and standard error in OUT/status-RANK
# and OUT/err-RANK.
set -euo pipefail
. "$(dirname "$0")/hosts.sh"
program=$1 config=$2 out=$3

mkdir -p "$out"
make_hosts 4

for rank in 0 1 2 3; do
  (
    variables_of "$rank" 4
    status=0
    ip netns exec "host$rank" "$program" train "$config" --out "$out" --set train.epochs=1000 \
      --set pipeline.timeout=4s >"$out/out-$rank" 2>"$out/err-$rank" || status=$?
    echo "$status" >"$out/status-$rank"
  ) &
done

until compgen -G "$out/checkpoint/epoch-*" >/dev/null || compgen -G "$out/status-*" >/dev/null; do sleep 0.02; done
ip -n bridge link set port2 down
for _ in $(seq 300); do
  [ -e "$out/status-0" ] && [ -e "$out/status-1" ] && [ -e "$out/status-3" ] && exit 0
  sleep 0.1
done
echo "cut_link: the ranks have not ended" >&2
exit 1

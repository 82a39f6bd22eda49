#!/bin/bash
# cut_link.sh PROGRAM CONFIG OUT: trains with four ranks, each on a host of its own, and cuts the link of rank 2 as if
# its cable were pulled once there is a checkpoint. Leaves each rank's exit status and standard error in OUT/status-RANK
# and OUT/err-RANK. A host is a network namespace; all is inside a user namespace, so no root is needed and nothing is
# left behind.
set -euo pipefail

if [ "${STRAIT_INSIDE:-}" != yes ]; then
  STRAIT_INSIDE=yes exec unshare --user --map-root-user --net --mount --pid --fork --mount-proc /bin/bash "$0" "$@"
fi
program=$1 config=$2 out=$3

mount -t tmpfs tmpfs /run
mkdir -p /run/netns "$out"
ip netns add bridge
ip -n bridge link add bridge type bridge
ip -n bridge link set bridge up
for rank in 0 1 2 3; do
  ip netns add "host$rank"
  ip link add eth0 netns "host$rank" type veth peer name "port$rank" netns bridge
  ip -n bridge link set "port$rank" master bridge up
  ip -n "host$rank" addr add "10.77.0.$((rank + 1))/24" dev eth0
  ip -n "host$rank" link set lo up
  ip -n "host$rank" link set eth0 up
done

for rank in 0 1 2 3; do
  (
    export RANK=$rank WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500
    export STRAIT_SECRET="a secret of this test"
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

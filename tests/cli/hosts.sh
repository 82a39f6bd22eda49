# To be sourced by a script, with its arguments: starts the script again in namespaces of its own, so that no root is
# needed and nothing is left behind, and gives it make_hosts.

if [ "${STRAIT_INSIDE:-}" != yes ]; then
  STRAIT_INSIDE=yes exec unshare --user --map-root-user --net --mount --pid --fork --mount-proc /bin/bash "$0" "$@"
fi
mount -t tmpfs tmpfs /run
mkdir -p /run/netns

# make_hosts COUNT: hosts host0, host1, ..., each a network namespace with an interface eth0 and the address 10.77.0.1,
# 10.77.0.2, ..., whose other ends are port0, port1, ... of a bridge in the namespace bridge.
make_hosts() {
  ip netns add bridge
  ip -n bridge link add bridge type bridge
  ip -n bridge link set bridge up
  local host
  for host in $(seq 0 $(($1 - 1))); do
    ip netns add "host$host"
    ip link add eth0 netns "host$host" type veth peer name "port$host" netns bridge
    ip -n bridge link set "port$host" master bridge up
    ip -n "host$host" addr add "10.77.0.$((host + 1))/24" dev eth0
    ip -n "host$host" link set lo up
    ip -n "host$host" link set eth0 up
  done
}

# variables_of RANK RANKS: exports what a launcher sets, for one rank on each host.
variables_of() {
  export RANK=$1 WORLD_SIZE=$2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500
  export STRAIT_SECRET="a secret of this test"
}

"""Trains and measures over one long, fast link, with several numbers of connections (`pipeline.connections`).

    sudo python3 bench/slow_links/long_links.py [--rate 1Gbps] [--round-trip 100] [--connections 1 4 16] [--repeat 3]

Writes docs/results/long_links.md and .json. The two hosts are network namespaces, and the link between their tun
devices is this script: a packet waits until those before it have gone at the rate, then for half of the round trip. A
queue of --queue ms of packets is dropped behind. A packet has at most 9000 bytes, so that Python keeps up with 1 Gbit/s;
buffers of TCP are as Debian has them.
"""

from __future__ import annotations

import argparse
import collections
import fcntl
import json
import multiprocessing
import os
import select
import struct
import sys
import tempfile
import time
from pathlib import Path

from network import INTERFACE, Network, address, command, parse_rate, run_main
from report import show
from results import machine, spread
from run import CONFIG, ROOT, run_ranks, set_flags

HOSTS = 2
MTU = 9000
BUFFERS = {"tcp_wmem": "4096 16384 4194304", "tcp_rmem": "4096 131072 6291456"}
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SETTINGS = {"model.cuts": '["layer1"]', "data.batch_size": 400, "data.train_limit": 2400, "train.epochs": 2, "data.root": "data"}


class LongNetwork(Network):
    """Two hosts at the ends of a link of a rate in bits per second and of a round trip in seconds."""

    def __init__(self, rate: float, round_trip: float, queue: float) -> None:
        super().__init__(HOSTS)
        self._link = multiprocessing.Process(target=self._carry, args=(rate, round_trip / 2, queue), daemon=True)

    def _build(self) -> None:
        for host, name in enumerate(self._hosts):
            command("ip", "netns", "add", name)
            command("ip", "-n", name, "link", "set", "lo", "up")
            command("ip", "-n", name, "tuntap", "add", "dev", INTERFACE, "mode", "tun")
            command("ip", "-n", name, "link", "set", INTERFACE, "mtu", MTU, "txqueuelen", 10000, "up")
            command("ip", "-n", name, "addr", "add", address(host), "peer", address(1 - host), "dev", INTERFACE)
            for key, value in BUFFERS.items():
                command("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.{key}={value}")
        self._link.start()

    def _remove_all(self) -> None:
        if self._link.pid:
            self._link.terminate()
            self._link.join()
        super()._remove_all()

    def _carry(self, rate: float, latency: float, queue: float) -> None:
        ends = []
        for host in range(HOSTS):
            self.enter(host)
            ends.append(os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK))
            fcntl.ioctl(ends[host], TUNSETIFF, struct.pack("16sH22x", INTERFACE.encode(), IFF_TUN | IFF_NO_PI))
        other = {ends[0]: ends[1], ends[1]: ends[0]}
        free = dict.fromkeys(ends, 0.0)  # when the last packet has gone
        under_way: dict[int, collections.deque[tuple[float, bytes]]] = {end: collections.deque() for end in ends}
        while True:
            due = min((packets[0][0] for packets in under_way.values() if packets), default=time.monotonic() + 1)
            ready, _, _ = select.select(ends, [], [], max(0.0, due - time.monotonic()))
            now = time.monotonic()
            for end in ready:
                for _ in range(64):
                    try:
                        packet = os.read(end, MTU)
                    except BlockingIOError:
                        break
                    gone = max(now, free[end]) + 8 * len(packet) / rate
                    if gone - now > queue:
                        continue
                    free[end] = gone
                    under_way[end].append((gone + latency, packet))
            for end, packets in under_way.items():
                while packets and packets[0][0] <= now:
                    os.write(other[end], packets.popleft()[1])


def measure(network: Network, rate: str, strait: Path, connections: int, seconds: float) -> dict[str, object]:
    flags = set_flags(SETTINGS | {"pipeline.connections": connections})
    with tempfile.TemporaryDirectory(prefix="strait-long-") as name:
        folder = Path(name)
        doctor = [str(strait), "doctor", str(CONFIG), *flags, "--ranks", "--json", "--seconds", str(seconds)]
        found = json.loads(run_ranks(network, rate, "strait", doctor, folder))
        pair = found["pairs"][0]
        run_ranks(network, rate, "strait", [str(strait), "train", str(CONFIG), *flags, "--out", str(folder / "run")], folder)
        epochs = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
        return {"connections": connections, "opened": pair["connections"], "bits_per_second": pair["bits_per_second"],
                "latency_seconds": pair["latency_seconds"], "advice": [finding["text"] for finding in found["findings"]],
                "samples_per_second": epochs[-1]["samples_per_second"], "train_loss": epochs[-1]["train_loss"],
                "config": (folder / "run" / "config.toml").read_text(),
                "code_version": json.loads((folder / "run" / "status.json").read_text())["code_version"]}


def page(results: dict[str, object]) -> str:
    found = results["measurements"]
    count = 1 + max(entry["round"] for entry in found)
    base = {entry["round"]: entry for entry in found if entry["connections"] == found[0]["connections"]}
    lines = ["| connections | there, Mbit/s | back, Mbit/s | samples per second | over the first row |",
             "|---:|---:|---:|---:|---:|"]
    for connections in dict.fromkeys(entry["connections"] for entry in found):
        rows = [entry for entry in found if entry["connections"] == connections]
        ways = [[entry["bits_per_second"][way] / 1e6 for entry in rows] for way in (0, 1)]
        samples = [entry["samples_per_second"] for entry in rows]
        ratios = [entry["samples_per_second"] / base[entry["round"]]["samples_per_second"] for entry in rows]
        lines.append(f"| {connections} | {show(spread(ways[0]), '.0f')} | {show(spread(ways[1]), '.0f')} | {show(spread(samples), '.1f')} | "
                     f"{show(spread(ratios), '.2f')} |")
    advice = next((text for entry in found for text in entry["advice"] if "pipeline.connections" in text), "nothing")
    intro = f"""\
Two hosts, each at an end of an emulated link of {results['rate']} and {results['round_trip_ms']:g} ms there and back: what `strait doctor` measures with
`pipeline.connections` at each number, and the samples per second of the last of two epochs of ResNet-18 of width 16 in two stages, raw
float32, six batches of 400 in 4 micro-batches.

{count} {'round' if count == 1 else 'rounds'}: medians, and in brackets the extremes; a ratio is one within a round. Both hosts and the script that is the link share {results['cores']} cores. Linux
gives a connection at most 4 MiB to send and 6 MiB to receive (Debian's defaults). Code {found[0]['code_version']}, {results['cpu']}, seed 0,
{results['date']}. Made by bench/slow_links/long_links.py."""
    notes = ["", results["note"]] if results["note"] else []
    return "\n".join(["# Long, fast links", "", intro, "", *lines, "", "With the first number `strait doctor` says:", "", f"    {advice}", *notes, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1Gbps")
    parser.add_argument("--round-trip", type=float, default=100.0, help="ms")
    parser.add_argument("--queue", type=float, default=100.0, help="ms of packets that wait for the link at most")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of strait doctor, a way")
    parser.add_argument("--strait", type=Path, default=ROOT / "build" / "strait")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    parser.add_argument("--note", default="", help="the last paragraph of the page: what else the machine did, say")
    flags = parser.parse_args()
    found = []
    with LongNetwork(parse_rate(flags.rate) or 1e12, flags.round_trip / 1e3, flags.queue / 1e3) as network:
        for turn in range(flags.repeat):
            for connections in flags.connections:
                found.append({"round": turn} | measure(network, flags.rate, flags.strait, connections, flags.seconds))
                print(json.dumps({key: found[-1][key] for key in ("round", "connections", "bits_per_second", "latency_seconds",
                                                                  "samples_per_second", "opened")}), flush=True)
    results = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "cpu": machine()["processor"], "cores": os.cpu_count(), "rate": flags.rate,
               "round_trip_ms": flags.round_trip, "queue_ms": flags.queue, "note": flags.note, "measurements": found}
    (flags.out / "long_links.json").write_text(json.dumps(results, indent=1) + "\n")
    (flags.out / "long_links.md").write_text(page(results))


if __name__ == "__main__":
    sys.exit(run_main("long_links.py", main))

"""Emulated hosts on one Linux machine, joined by links of a chosen rate. Needs root.

A host is a network namespace with one interface, eth0, address 10.77.0.1, 10.77.0.2, ... Its other end is a port
of a bridge in one further namespace, so nothing touches the machine's own network. What a host sends is limited to
the rate in bits per second, counted with Ethernet, IP and TCP headers as on a real link; what it receives is not
limited besides, and there is no delay beyond that of the machine.

How the limit is chosen:
- The token bucket (tbf) holds what the rate carries in 0.25 ms, at least four frames. A smaller one loses rate
  whenever the timer that refills it is late: with two frames, 20% at 100 Mbit/s on a busy machine. What lies in a
  full bucket passes for nothing: 6 kB up to 190 Mbit/s, which in a message of 100 kB about makes up for the
  headers, and 31 kB at 1 Gbit/s.
- TCP hands down packets of up to 64 kB for the card to cut up. gso_max_size keeps them to half of the bucket, so
  that it need not be full, which is where late refills are lost, before the next one may go.
- The queue holds 256 kB, or 50 ms of the rate if that is more. TCP itself keeps no more than two packets or a
  millisecond of data of a connection there, so that nothing is dropped and no timeout begins.
- Congestion control is cubic, Linux's default, whatever the machine uses.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

INTERFACE = "eth0"
PREFIX = "strait-net"
SUBNET = "10.77.0.0/24"
FRAME = 1514
UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def parse_rate(text: str) -> float | None:
    """Bits per second of "20Mbps" or "1Gbps"; None for "unlimited". Raises ValueError for anything else."""
    if text == "unlimited":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)bps", text.lower())
    if not match or float(match[1]) == 0:
        raise ValueError(f"{text!r} is not a rate such as 20Mbps, 1Gbps or unlimited")
    return float(match[1]) * UNITS[match[2]]


def burst_bytes(rate: float) -> int:
    """The size of the token bucket; the reasons stand above."""
    return max(4 * FRAME, int(rate / 8 * 0.25e-3))


def queue_bytes(rate: float) -> int:
    return max(256 * 1024, int(rate / 8 * 0.05))


def address(host: int) -> str:
    return f"10.77.0.{host + 1}"


def command(*arguments: object) -> str:
    """Runs a command and returns what it prints; its complaint is in the exception when it fails."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def remove(namespace: str) -> None:
    """Ends the processes of a namespace and removes it with its interfaces."""
    for pid in command("ip", "netns", "pids", namespace).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended by itself in the meantime
    command("ip", "netns", "del", namespace)


def remove_leftovers() -> None:
    """Removes the namespaces of processes that were killed before they could do it."""
    for line in command("ip", "netns", "list").splitlines():
        name = line.split()[0]
        match = re.fullmatch(PREFIX + r"-(\d+)-\w+", name)
        if match and not alive(int(match[1])):
            remove(name)


def run_main(program: str, work: Callable[[], None]) -> int:
    """Does the work of a program and gives its exit status; what is wrong is said in a line."""
    exit_on_sigterm()
    try:
        work()
    except (RuntimeError, OSError, ValueError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    return 0


def exit_on_sigterm() -> None:
    """Makes SIGTERM leave through the `with` blocks, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Network:
    """Hosts 0 .. hosts - 1 for the time of a `with` block. A rate of None leaves the links unlimited; a list has one a host."""

    def __init__(self, hosts: int, rate: float | None | list[float | None] = None) -> None:
        self._bridge = f"{PREFIX}-{os.getpid()}-bridge"
        self._hosts = [f"{PREFIX}-{os.getpid()}-{host}" for host in range(hosts)]
        self._rates = rate if isinstance(rate, list) else [rate] * hosts
        self.hosts = hosts

    def __enter__(self) -> Network:
        if os.geteuid() != 0:
            raise PermissionError("emulated links need root")
        remove_leftovers()
        try:
            self._build()
        except BaseException:
            self._remove_all()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._remove_all()

    def start(self, host: int, arguments: list[str], **options: object) -> subprocess.Popen[str]:
        """Starts a process on a host; options are those of subprocess.Popen."""
        inside = ["ip", "netns", "exec", self._hosts[host], *arguments]
        return subprocess.Popen(inside, text=True, **options)  # type: ignore[call-overload, no-any-return]

    def enter(self, host: int) -> None:
        """Moves the calling thread to a host for good."""
        with open(f"/run/netns/{self._hosts[host]}", "rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns", self._hosts[host])

    def down(self, host: int) -> None:
        """Cuts a host's link as if its cable were pulled: what is sent is lost, and its peers are not told."""
        command("ip", "-n", self._bridge, "link", "set", f"port{host}", "down")

    def up(self, host: int) -> None:
        """Mends a link that was cut."""
        command("ip", "-n", self._bridge, "link", "set", f"port{host}", "up")

    def dropped(self, host: int) -> int:
        """Packets that found the host's queue full."""
        shown = command("tc", "-n", self._hosts[host], "-s", "qdisc", "show", "dev", INTERFACE)
        return sum(int(count) for count in re.findall(r"dropped (\d+)", shown))

    def _build(self) -> None:
        command("ip", "netns", "add", self._bridge)
        command("ip", "-n", self._bridge, "link", "add", "bridge", "type", "bridge")
        command("ip", "-n", self._bridge, "link", "set", "bridge", "up")
        for host in range(len(self._hosts)):
            self._add_host(host)

    def _add_host(self, host: int) -> None:
        name, port = self._hosts[host], f"port{host}"
        command("ip", "netns", "add", name)
        command("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        command("ip", "link", "add", INTERFACE, "netns", name, "type", "veth",
                "peer", "name", port, "netns", self._bridge)
        command("ip", "-n", self._bridge, "link", "set", port, "master", "bridge", "up")
        command("ip", "-n", name, "addr", "add", f"{address(host)}/24", "dev", INTERFACE, "noprefixroute")
        command("ip", "-n", name, "link", "set", "lo", "up")
        rate = self._rates[host]
        if rate is not None:
            self._limit(name, rate)
        command("ip", "-n", name, "link", "set", INTERFACE, "up")
        command("ip", "-n", name, "route", "add", SUBNET, "dev", INTERFACE, "congctl", "cubic")

    def change(self, host: int, rate: float) -> None:
        """Gives a host's link another rate, while its processes go on."""
        self._limit(self._hosts[host], rate)

    @staticmethod
    def _limit(name: str, rate: float) -> None:
        burst = burst_bytes(rate)
        command("ip", "-n", name, "link", "set", INTERFACE, "gso_max_size", min(burst // 2, 65536))
        command("tc", "-n", name, "qdisc", "replace", "dev", INTERFACE, "root", "tbf", "rate", f"{rate:.0f}bit",
                "burst", burst, "limit", queue_bytes(rate))

    def _remove_all(self) -> None:
        there = {line.split()[0] for line in command("ip", "netns", "list").splitlines()}
        for name in [*self._hosts, self._bridge]:
            if name in there:
                remove(name)


def wait_all(processes: list[subprocess.Popen[str]], timeout: float) -> list[int]:
    """The exit statuses once all have ended. When one fails or time is up, the others are ended too."""
    limit = time.monotonic() + timeout
    while any(process.poll() is None for process in processes):
        if time.monotonic() > limit or any(process.returncode for process in processes):
            time.sleep(1)  # the others may have something to say about it
            for process in processes:
                process.kill()
        time.sleep(0.05)
    return [process.wait() for process in processes]

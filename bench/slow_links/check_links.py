"""Measures what the emulated links carry: TCP payload from host 0 to host 1, in a long message and in short ones.

    sudo python3 bench/slow_links/check_links.py [--rates 20Mbps 1Gbps ...]

A full link carries 1448 bytes of payload in a frame of 1514: 95.6% of its rate.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import statistics
import struct
import sys
import time
from multiprocessing.connection import Connection

from network import Network, address, burst_bytes, parse_rate, run_main

PORT = 4000
HEADER = struct.Struct("!Qd")  # bytes that follow, the sender's clock; all hosts share it
SHORT = 100_000


def send(network: Network, long: int) -> None:
    """Sends a long message to warm up and one to be measured, then short ones with a pause before each."""
    network.enter(0)
    with socket.create_connection((address(1), PORT)) as connection:
        for size in [long // 4, long, *[SHORT] * 20]:
            message = bytes(size)
            connection.sendall(HEADER.pack(size, time.monotonic()))
            connection.sendall(message)
            connection.recv(1)
            time.sleep(0.02)


def receive(network: Network, results: Connection) -> None:
    """Reports (bytes, seconds from the first byte's sending to the last one's arrival) of every message."""
    network.enter(1)
    with socket.create_server((address(1), PORT)) as server:
        results.send(None)
        connection, _ = server.accept()
        with connection:
            while header := connection.recv(HEADER.size, socket.MSG_WAITALL):
                size, start = HEADER.unpack(header)
                left = size
                while left:
                    part = connection.recv(min(left, 1 << 20))
                    if not part:
                        raise EOFError(f"{left} bytes of a message are missing")
                    left -= len(part)
                results.send((size, time.monotonic() - start))
                connection.send(b"!")
    results.send(None)


def measure(rate: float | None) -> tuple[float, float, int]:
    """Bits per second in a long message, the median over short ones, and packets dropped."""
    long = int((rate or 10e9) / 8 * 1.5)
    with Network(2, rate) as network:
        results, results_end = multiprocessing.Pipe(duplex=False)
        processes = [multiprocessing.Process(target=receive, args=(network, results_end)),
                     multiprocessing.Process(target=send, args=(network, long))]
        processes[0].start()
        results_end.close()  # the receiver's alone, so that its end is heard
        results.recv()
        processes[1].start()
        rates = [8 * size / seconds for size, seconds in iter(results.recv, None)]
        for process in processes:
            process.join()
        return rates[1], statistics.median(rates[2:]), network.dropped(0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what the emulated links carry")
    parser.add_argument("--rates", nargs="+", default=["unlimited", "1Gbps", "500Mbps", "100Mbps", "20Mbps"])
    print(f"{'rate':>10}  {'burst':>6}  {'long message':>20}  {'100 kB message':>20}  dropped")
    for name in parser.parse_args().rates:
        rate = parse_rate(name)
        long, short, dropped = measure(rate)
        shares = [f"{value / 1e6:9.2f} Mbit/s" + (f" {value / rate:4.0%}" if rate else "") for value in (long, short)]
        burst = burst_bytes(rate) if rate else "-"
        print(f"{name:>10}  {burst:>6}  {shares[0]:>20}  {shares[1]:>20}  {dropped}", flush=True)


if __name__ == "__main__":
    sys.exit(run_main("check_links.py", main))

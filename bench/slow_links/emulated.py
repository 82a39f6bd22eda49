"""Compares `--link` with links that the kernel limits: the same run over each, in turn, and writes a table.

    sudo python3 bench/slow_links/emulated.py [--rates 20Mbps 100Mbps] [--rows "raw fp32"] [--repeat 3] [--seconds 15]

A pair trains once with every stage on a host of its own whose link tc tbf limits (network.py), and once with all
stages on one host, unlimited, and `--link`. Both encrypt, so that this costs both the same. The second pair begins
with the other. The two must end with the same weights, bit for bit, else the program fails. What the JSON file holds
already of other rates, rows or versions of the code stays there; the page has all of it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from network import Network, run_main
from report import replace_between_markers, show
from results import machine, replace, spread
from rows import BATCH, EPOCHS, ONE_MACHINE, QUARTER, RAW, ROWS, SECONDS, Row, rate_of
from run import CONFIG, ROOT, STAGES, run_ranks, set_flags

BEGIN = "<!-- Written by bench/slow_links/emulated.py from here -->"
KERNEL = "tc tbf"
LINK = "--link"
RATES = ["20Mbps", "100Mbps", "500Mbps", "1Gbps"]


def train(strait: Path, network: Network, side: str, rate: str, row: Row, seconds: float) -> dict[str, object]:
    """The samples per second of the epochs behind the first, and what the run is known by."""
    steps = QUARTER.steps_an_epoch(seconds, row.bits, rate_of(rate))
    settings = {"compression.activations.codec": row.activations, "compression.gradients.codec": row.gradients,
                "data.train_limit": BATCH * steps, "train.epochs": EPOCHS, "data.root": "data"}
    flags = set_flags(settings)
    with tempfile.TemporaryDirectory(prefix="strait-emulated-links-") as name:
        folder = Path(name)
        run = folder / "run"
        command = [str(strait), "train", str(CONFIG), *flags, "--out", str(run)]
        if side == LINK:
            run_ranks(network, ONE_MACHINE, "tls", [*command, "--link", rate], folder)
        else:
            run_ranks(network, rate, "strait", command, folder)
        epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][1:]
        status = json.loads((run / "status.json").read_text())
        return {"samples_per_second": sum(e["steps"] for e in epochs) * BATCH / sum(e["seconds"] for e in epochs),
                "seconds": sum(e["seconds"] for e in epochs), "steps": sum(e["steps"] for e in epochs),
                "weights": hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest(),
                "config": (run / "config.toml").read_text(), "code_version": status["code_version"],
                "machine": status["machine"], "load": os.getloadavg()[0],
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def measure(flags: argparse.Namespace, pairs: list[dict[str, object]]) -> None:
    """Appends a pair after each that is done, and keeps what there is in the file."""
    for turn in range(flags.repeat):
        for rate in flags.rates:
            for row in (row for row in ROWS if row.name in flags.rows):
                with Network(STAGES, rate_of(rate)) as network:
                    sides = [KERNEL, LINK] if turn % 2 == 0 else [LINK, KERNEL]
                    pair = {side: train(flags.strait, network, side, rate, row, flags.seconds) for side in sides}
                kernel, link = pair[KERNEL], pair[LINK]
                if kernel["weights"] != link["weights"]:
                    raise RuntimeError(f"{rate}, {row.name}: the weights differ with {LINK}")
                pairs.append({"rate": rate, "row": row.name, "turn": turn, KERNEL: kernel, LINK: link})
                replace(flags.out / "emulated_links.json", {"machine": machine(), "pairs": pairs})
                print(f"{turn + 1}  {rate:>8}  {row.name:<22}  {kernel['samples_per_second']:8.2f}  "
                      f"{link['samples_per_second']:8.2f}  {ratio_of(pairs[-1]):6.3f}", flush=True)


def ratio_of(pair: dict[str, object]) -> float:
    return pair[LINK]["samples_per_second"] / pair[KERNEL]["samples_per_second"]  # type: ignore[index]


def table(pairs: list[dict[str, object]]) -> str:
    lines = ["| rate | codec | pairs | tc tbf, samples/s | --link, samples/s | --link over tc tbf | load |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for rate in RATES:
        for row in ROWS:
            found = [pair for pair in pairs if (pair["rate"], pair["row"]) == (rate, row.name)]
            if not found:
                continue
            rates = [show(spread(pair[side]["samples_per_second"] for pair in found), ".1f")  # type: ignore[index]
                     for side in (KERNEL, LINK)]
            load = show(spread(pair[side]["load"] for pair in found for side in (KERNEL, LINK)), ".1f")  # type: ignore[index]
            lines.append(f"| {rate} | {row.name} | {len(found)} | {' | '.join(rates)} | "
                         f"{show(spread(ratio_of(pair) for pair in found), '.3f')} | {load} |")
    return "\n".join(lines)


def write_page(page: Path, results: dict[str, object]) -> None:
    """Writes anew what stands between the markers."""
    pairs: list[dict[str, object]] = results["pairs"]  # type: ignore[assignment]
    here: dict[str, object] = results["machine"]  # type: ignore[assignment]
    runs = [pair[side] for pair in pairs for side in (KERNEL, LINK)]
    versions = ", ".join(sorted({f"{run['code_version']} ({run['machine']})" for run in runs}))  # type: ignore[index]
    text = "\n".join([
        f"- Code: strait {versions}.",
        f"- Machine: {here['cores']} cores of {here['processor']}, Linux {here['kernel']}.",
        "- Configuration: [resnet18.toml](../../bench/slow_links/resnet18.toml), seed 0, with the codecs of "
        "[rows.py](../../bench/slow_links/rows.py); resolved beside every figure in [emulated_links.json](emulated_links.json).",
        "- Medians over the pairs, in brackets the least and the greatest; a ratio is taken within a pair. The weights of "
        "every pair are equal, bit for bit. *load*: the system's mean number of running processes over the last minute, "
        "at the end of a run; four are the run's own.", "", table(pairs)])
    page.write_text(replace_between_markers(page.read_text() if page.exists() else "", text, BEGIN))


def main() -> None:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(description="Compare --link with links that tc tbf limits")
    parser.add_argument("--rates", nargs="+", choices=RATES, default=RATES)
    parser.add_argument("--rows", nargs="+", choices=names, default=[RAW], metavar="ROW",
                        help=", ".join(names).replace("%", "%%"))
    parser.add_argument("--repeat", type=int, default=1, help="pairs of each")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a run trains, about, a third of it to warm up")
    parser.add_argument("--strait", type=Path, default=ROOT / "build" / "strait")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    flags = parser.parse_args()
    flags.strait, flags.out = flags.strait.resolve(), flags.out.resolve()
    file = flags.out / "emulated_links.json"
    pairs = json.loads(file.read_text())["pairs"] if file.exists() else []
    measure(flags, pairs)
    write_page(flags.out / "emulated_links.md", json.loads(file.read_text()))


if __name__ == "__main__":
    sys.exit(run_main("emulated.py", main))

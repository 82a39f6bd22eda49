#!/usr/bin/env python3
"""The accuracies in docs/results/small.md against the metrics of the runs that they are of."""

import json
import pathlib
import re
import statistics
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ROOT / "docs" / "results" / "small"


def epochs(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def accuracies(run, mode):
    return [epoch["test"][mode]["accuracy"] for epoch in run]


def bytes_a_step(epoch):
    sent = sum(boundary[direction]["wire_bytes"] for boundary in epoch["boundaries"]
               for direction in ("activations", "gradients"))
    return round(sent / epoch["steps"])


def result(run):
    """What a table says of a run: off, on, train loss, bytes per step."""
    last = run[-1]
    return (f"{accuracies(run, 'off')[-1]:.2f}", f"{accuracies(run, 'on')[-1]:.2f}", f"{last['train_loss']:.4f}",
            f"{bytes_a_step(last):,}")


def tables(text):
    """Each row of each table as a dictionary by the names of its columns; the first column is called name."""
    header = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else []
        if not cells:
            header = None
        elif header is None:
            header = ["name", *cells[1:]]
        elif not set(cells[0]) <= set("-: ") or not cells[0]:
            yield dict(zip(header, cells))


class SmallResults(unittest.TestCase):
    def setUp(self):
        self.runs = {str(file.parent.relative_to(SMALL)): epochs(file) for file in SMALL.glob("*/*/metrics.jsonl")}
        self.page = (SMALL.parent / "small.md").read_text()

    def test_every_row_is_a_run_and_every_run_a_row(self):
        results = {result(run): name for name, run in self.runs.items() if not name.startswith("store/")}
        shown = set()
        for row in tables(self.page):
            if "bytes per step" in row:
                found = (row["off"], row["on (plain)"], row["train loss"], row["bytes per step"])
                self.assertIn(found, results, row["name"])
                self.assertTrue(results[found].split("/")[1].startswith(row["name"].split(",")[0]), row["name"])
                shown.add(found)
        self.assertEqual(shown, set(results))

    def test_buffers(self):
        rows = [row for row in tables(self.page) if "best off" in row]
        self.assertEqual(len(rows), 3)
        for row in rows:
            run = self.runs[f"store/{row['name']}"]
            best = [f"{max(accuracies(run, mode)):.2f}" for mode in ("off", "on")]
            self.assertEqual([row["off"], row["on (plain)"], row["train loss"], row["best off"], row["best on"]],
                             [*result(run)[:3], *best])

    def test_jumps_of_the_last_epoch(self):
        runs = {name: run for name, run in self.runs.items() if not name.startswith("two-threads/")}
        self.assertEqual(runs["store/fp32"][-1]["train_loss"], runs["table4/aq-sgd-topk-30"][-1]["train_loss"])
        del runs["store/fp32"]  # the same run
        words = " ".join(self.page.split())
        said = re.search(r"changes by ([\d.]+) points in the mean over the (\d+) different runs of these tables, and by "
                         r"([\d.]+) at most \(topk-10\); with it off by ([\d.]+) and ([\d.]+)", words)
        on, off = ([abs(a[-1] - a[-2]) for a in (accuracies(run, mode) for run in runs.values())]
                   for mode in ("on", "off"))
        self.assertEqual(said.groups(), (f"{statistics.mean(on):.1f}", str(len(runs)), f"{max(on):.1f}",
                                         f"{statistics.mean(off):.1f}", f"{max(off):.1f}"))


if __name__ == "__main__":
    unittest.main()

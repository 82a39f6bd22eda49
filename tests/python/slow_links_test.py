#!/usr/bin/env python3
"""What bench/slow_links makes of its figures: medians and spreads, verdicts, the page. It measures nothing."""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "slow_links"))
sys.dont_write_bytecode = True

import auto  # noqa: E402
import emulated  # noqa: E402
import long_links  # noqa: E402
import pipelining  # noqa: E402
import report  # noqa: E402
from network import Network, parse_rate, run_main  # noqa: E402
from results import Results, Spread, cell, spread  # noqa: E402
from rows import BATCH, EPOCHS, FILL, QUARTER, RATES, TRAININGS, rate_of  # noqa: E402


def strait(rate, seconds_a_step=1.0):
    traffic = {"raw_bytes": 600, "wire_bytes": 200}
    return {"samples_per_second": rate, "seconds": 4.0, "steps": 8, "code_version": "0.1.0+abc", "machine": "LibTorch 9",
            "config": "name = \"x\"\nseed = 7\n[pipeline]\nmicro_batches = 4\n",
            "last_epoch": {"boundaries": [{"activations": traffic, "gradients": traffic | {"wire_bytes": 100}}],
                           "stages": [{"forward_seconds": 0.05, "backward_seconds": 0.1},
                                      {"forward_seconds": 0.03, "backward_seconds": 0.07}]},
            "plan": {"ideal_step_seconds": 0.9 * seconds_a_step, "predicted_step_seconds": 1.1 * seconds_a_step,
                     "measured_step_seconds": seconds_a_step}}


def pytorch(rate):
    return {"samples_per_second": rate, "seconds": 4.0, "steps": 8, "torch": "9.9"}


def entry(side, row, turn, figures, rate="20Mbps"):
    return {"side": side, "rate": rate, "row": row, "turn": turn, "version": "v", "figures": figures}


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def results(self, entries):
        file = self.folder / "slow_links.json"
        machine = {"processor": "P", "cores": 2, "kernel": "K"}
        file.write_text(json.dumps({"machine": machine, "measurements": entries}))
        return Results(file)

    def three_rounds(self):
        return self.results([entry("strait", "raw fp32", turn, strait(r)) for turn, r in enumerate([10, 20, 40])] +
                            [entry("strait", "topk 10%", turn, strait(r)) for turn, r in enumerate([70, 120, 200])] +
                            [entry("pytorch", "topk 10%", turn, pytorch(r)) for turn, r in enumerate([35, 70, 60])])

    def test_ratios_are_taken_within_a_round(self):
        found = cell(self.three_rounds(), "20Mbps", "topk 10%")
        self.assertEqual(found.strait, Spread(70, 120, 200, 3))
        self.assertEqual(found.speed_up, Spread(5, 6, 7, 3))  # 7, 6 and 5; of the medians it would be 6, of the ends 20
        self.assertEqual(found.over_torch, Spread(120 / 70, 2, 200 / 60, 3))

    def test_a_round_that_only_one_side_has_makes_no_ratio(self):
        results = self.results([entry("strait", "raw fp32", 0, strait(10)), entry("strait", "raw fp32", 1, strait(20)),
                                entry("pytorch", "raw fp32", 1, pytorch(5))])
        self.assertEqual(cell(results, "20Mbps", "raw fp32").over_torch, Spread(4, 4, 4, 1))
        self.assertIsNone(cell(results, "20Mbps", "fp16").strait)

    def test_shares_are_of_the_step_that_the_plan_was_made_of(self):
        # The rate over all timed epochs, 50 samples per second, would give 0.225 and 0.275 of a step.
        found = cell(self.results([entry("strait", "raw fp32", 0, strait(50, 0.5))]), "20Mbps", "raw fp32")
        self.assertAlmostEqual(found.ideal_share.median, 0.9)
        self.assertAlmostEqual(found.predicted.median, 1.1)
        self.assertAlmostEqual(found.cores.median, 4 * 0.25 / 0.5 / 2)

    def test_bytes_count_both_directions(self):
        found = cell(self.results([entry("strait", "raw fp32", 0, strait(50))]), "20Mbps", "raw fp32")
        self.assertEqual(found.byte_ratio.median, 4)

    def test_a_verdict_needs_every_round(self):
        self.assertEqual(report.verdict(spread([1.0, 1.2, 1.1]), 1.0), "pass")
        self.assertEqual(report.verdict(spread([0.99, 1.2, 1.1]), 1.0), "within noise")
        self.assertEqual(report.verdict(spread([0.9, 0.99]), 1.0), "FAIL")
        self.assertEqual(report.verdict(spread([5.0]), 1.0), "one round: no verdict")

    def test_a_page_stays_where_there_are_no_figures(self):
        (self.folder / "slow_links.md").write_text("published\n")
        with self.assertRaisesRegex(RuntimeError, "slow_links.json: expected figures, found none"):
            report.write(Results(self.folder / "slow_links.json"), self.folder)
        self.assertEqual((self.folder / "slow_links.md").read_text(), "published\n")
        (self.folder / "slow_links.json").write_text('{"machine"')
        with self.assertRaisesRegex(RuntimeError, "slow_links.json: Expecting ':' delimiter"):
            Results(self.folder / "slow_links.json")

    def test_the_page_says_where_its_figures_come_from(self):
        (self.folder / "slow_links.md").write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
        report.write(self.three_rounds(), self.folder)
        page = (self.folder / "slow_links.md").read_text()
        self.assertTrue(page.startswith("before\n") and page.endswith("after\n"))
        for words in ("Rounds: 3.", "0.1.0+abc", "LibTorch 9", "PyTorch 9.9", "2 cores of P, Linux K", "seed 7",
                      "8 steps of 100 samples in 4.0 s", "120.0 (70.0 to 200.0)",
                      "| over raw, 20Mbps, topk 10% | 6.00 | 6.00 (5.00 to 7.00) | within noise |",
                      "| over PyTorch, 20Mbps, topk 10% | 2.00 | 2.00 (1.71 to 3.33) | within noise |"):
            self.assertIn(words, page)
        self.assertNotIn("old", page)
        self.assertIn("<svg", (self.folder / "slow_links.svg").read_text())

    def test_the_published_page_is_what_its_figures_give(self):
        published = ROOT / "docs" / "results"
        for page, training in TRAININGS.items():
            for ending in ("json", "md", "svg"):
                shutil.copy(published / f"{page}.{ending}", self.folder)
            report.write(Results(self.folder / f"{page}.json"), self.folder, training)
            for name in (f"{page}.md", f"{page}.svg"):
                self.assertEqual((self.folder / name).read_text(), (published / name).read_text(), name)


class EmulatedPages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_ratios_are_taken_within_a_pair(self):
        def run(samples, load):
            return {"samples_per_second": samples, "load": load, "code_version": "0.1.0+abc", "machine": "LibTorch 9"}

        pairs = [{"rate": "20Mbps", "row": "raw fp32", "tc tbf": run(kernel, 1.0), "--link": run(link, load)}
                 for kernel, link, load in ((10, 11, 2.0), (20, 20, 3.0), (40, 36, 4.0))]
        page = self.folder / "emulated_links.md"
        page.write_text(f"before\n{emulated.BEGIN}\nold\n{report.END}\nafter\n")
        emulated.write_page(page, {"machine": {"processor": "P", "cores": 2, "kernel": "K"}, "pairs": pairs})
        text = page.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertNotIn("old", text)
        self.assertIn("| 20Mbps | raw fp32 | 3 | 20.0 (10.0 to 40.0) | 20.0 (11.0 to 36.0) | 1.000 (0.900 to 1.100) | "
                      "1.5 (1.0 to 4.0) |", text)
        self.assertIn("strait 0.1.0+abc (LibTorch 9)", text)
        self.assertIn("2 cores of P, Linux K", text)

    def test_the_published_page_is_what_its_figures_give(self):
        published = ROOT / "docs" / "results"
        shutil.copy(published / "emulated_links.md", self.folder)
        emulated.write_page(self.folder / "emulated_links.md", json.loads((published / "emulated_links.json").read_text()))
        self.assertEqual((self.folder / "emulated_links.md").read_text(), (published / "emulated_links.md").read_text())


class OtherPages(unittest.TestCase):
    def test_the_published_pages_are_what_their_figures_give(self):
        for page, name in ((long_links.page, "long_links"), (pipelining.page, "pipelining")):
            figures = json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text())
            self.assertEqual(page(figures), (ROOT / "docs" / "results" / f"{name}.md").read_text())


class RowsOfAuto(unittest.TestCase):
    def found(self, slow, *rows):
        return {"slow": slow, "fast": "500Mbps", "targets": [1.65], "code_version": "new", "unequal": list(rows)}

    def test_rows_that_are_not_measured_again_stay(self):
        def row(codec, seed, **more):
            return {"codec": codec, "seed": seed, "reached": [[10, 1.0]], **more}
        before = self.found("20Mbps", row("auto", 0), row("quant:2 by blocks", 1, code_version="oldest"), row("quant:2 by blocks", 0))
        before["code_version"] = "old"
        again = self.found("20Mbps", row("auto", 0, code_version="new"), row("auto", 1, code_version="new"))
        self.assertEqual([(each["seed"], each["codec"], each["code_version"]) for each in auto.with_earlier(again, before)],
                         [(0, "quant:2 by blocks", "old"), (0, "auto", "new"), (1, "quant:2 by blocks", "oldest"), (1, "auto", "new")])
        elsewhere = self.found("10Mbps", row("auto", 0, code_version="new"))
        self.assertEqual(auto.with_earlier(elsewhere, before), elsewhere["unequal"])

    def test_a_line_that_is_being_written_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "metrics.jsonl"
            self.assertEqual(auto.lines_of(file), [])
            for text, epochs in (("", 0), ('{"epoch":0}', 0), ('{"epoch":0}\n', 1), ('{"epoch":0}\n{"epo', 1)):
                file.write_text(text)
                self.assertEqual(len(auto.lines_of(file)), epochs, text)


class Refusals(unittest.TestCase):
    def test_what_is_wrong_is_a_line(self):
        def without_root():
            with unittest.mock.patch("os.geteuid", return_value=1000), Network(2):
                self.fail("there are links without root")

        for work, said in ((without_root, "emulated links need root"),
                           (lambda: parse_rate("5x"), "'5x' is not a rate such as 20Mbps, 1Gbps or unlimited")):
            with contextlib.redirect_stderr(io.StringIO()) as stderr:
                self.assertEqual(run_main("a.py", work), 1)
            self.assertEqual(stderr.getvalue(), f"a.py: {said}\n")


class Lengths(unittest.TestCase):
    def test_a_measurement_takes_about_the_seconds_asked_for(self):
        for training in TRAININGS.values():
            for rate in map(rate_of, RATES):
                for bits in (1.3, 9.6, 32):
                    step = BATCH * (1 / training.compute_rate + (FILL * training.elements * bits / rate if rate else 0))
                    steps = EPOCHS * training.steps_an_epoch(15, bits, rate)
                    self.assertLessEqual(abs(steps * step - 15), EPOCHS * step)
        self.assertEqual(QUARTER.steps_an_epoch(0.1, 32, parse_rate("20Mbps")), 1)


if __name__ == "__main__":
    unittest.main()
